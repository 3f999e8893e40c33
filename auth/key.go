package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"hash/crc32"
	"math/big"
	"strings"
)

// A raw key is aiv_live_, 43 base62 characters of 256 random bits, and 6 base62 characters of the CRC-32 (IEEE) of all
// characters before them, like [GitHub's tokens]: typing errors and false findings of secret scanners are detected
// without the database.
//
// [GitHub's tokens]: https://github.blog/engineering/platform-security/behind-githubs-new-authentication-token-formats/
const (
	keyStart       = "aiv_live_"
	tokenStart     = "aiv_work_" // of a worker's token, which has the form of a key
	randomLength   = 43
	checksumLength = 6
	keyLength      = len(keyStart) + randomLength + checksumLength
	prefixLength   = len(keyStart) + 8 // characters of a key that are stored, so that a key can be told from others
)

// Hash is the SHA-256 of a raw key. Nothing else of its secret part is stored. A slow hash would not protect it better,
// because the key has 256 random bits.
type Hash [sha256.Size]byte

// ErrMalformedKey is returned for text that does not have the form of a key.
var ErrMalformedKey = errors.New("malformed API key")

// HashKey checks a raw key's form and checksum and returns its hash.
func HashKey(key string) (Hash, error) { return hashOf(key, keyStart) }

// HashWorkerToken checks the form and checksum of a worker's token and returns its hash.
func HashWorkerToken(token string) (Hash, error) { return hashOf(token, tokenStart) }

// hashOf checks what can be checked without the database, and returns the hash of the whole key.
func hashOf(key, start string) (Hash, error) {
	if len(key) != keyLength || !strings.HasPrefix(key, start) {
		return Hash{}, ErrMalformedKey
	}
	b := []byte(key)
	if sum := checksum(b[:keyLength-checksumLength]); string(sum[:]) != key[keyLength-checksumLength:] {
		return Hash{}, ErrMalformedKey
	}
	return sha256.Sum256(b), nil
}

// newSecret returns a new raw key or token, which begins with start, its public prefix and its hash.
func newSecret(start string) (key, prefix string, hash Hash) {
	// 32 bytes are a number of 43 digits or fewer in base 62. rand.Read never fails.
	random := make([]byte, 32)
	rand.Read(random)
	digits := base62(new(big.Int).SetBytes(random), randomLength)
	body := start + digits
	sum := checksum([]byte(body))
	key = body + string(sum[:])
	return key, key[:prefixLength], sha256.Sum256([]byte(key))
}

// checksum returns the last characters of a key, a CRC-32 in base 62 of body, which is all that precedes them.
func checksum(body []byte) (b [checksumLength]byte) {
	// The most significant digit comes first. Six digits are enough for 32 bits.
	sum := crc32.ChecksumIEEE(body)
	for i := checksumLength - 1; i >= 0; i-- {
		b[i] = alphabet[sum%62]
		sum /= 62
	}
	return b
}

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// base62 formats n with the given number of digits. (big.Int.Text uses lower-case letters before upper-case ones.)
func base62(n *big.Int, length int) string {
	b := make([]byte, length)
	digit, base := new(big.Int), big.NewInt(62)
	for i := length - 1; i >= 0; i-- {
		n.DivMod(n, base, digit)
		b[i] = alphabet[digit.Int64()]
	}
	return string(b)
}
