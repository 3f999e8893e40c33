package webhooks

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strconv"
	"unicode"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

const minMaster = 32 // bytes

// ErrOtherMaster is returned by OpenMaster when endpoints' secrets are derived from another master secret.
var ErrOtherMaster = errors.New("the master secret of webhooks is not the one that this database was used with; " +
	"start every process with the same -webhook-master, or without it everywhere")

// A Master is the secret from which the secrets of all endpoints are derived. No endpoint's secret is stored.
type Master struct{ key []byte }

// OpenMaster returns the master secret from the file or, without a file name, from the database. The first call
// for a database stores the secret's fingerprint; later calls with another secret fail with ErrOtherMaster.
func OpenMaster(ctx context.Context, pool *pgxpool.Pool, file string) (*Master, error) {
	key, err := readMaster(ctx, pool, file)
	if err != nil {
		return nil, err
	}
	// The prefix separates this use of the secret from others.
	fingerprint := sha256.Sum256(append([]byte("aiv webhook master\n"), key...))
	stored, err := readFingerprint(ctx, pool)
	// Several processes may start at once. Whichever stores its fingerprint first decides, so it is read again.
	if errors.Is(err, pgx.ErrNoRows) {
		if _, err := pool.Exec(ctx, insertMaster, fingerprint[:]); err != nil {
			return nil, fmt.Errorf("storing the fingerprint of the webhook master: %w", err)
		}
		stored, err = readFingerprint(ctx, pool)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the fingerprint of the webhook master: %w", err)
	}
	if !bytes.Equal(stored, fingerprint[:]) {
		return nil, ErrOtherMaster
	}
	return &Master{key}, nil
}

// readFingerprint prepares no statement, because a process calls it once.
func readFingerprint(ctx context.Context, pool *pgxpool.Pool) (fingerprint []byte, err error) {
	err = pool.QueryRow(ctx, readMasterFingerprint, pgx.QueryExecModeExec).Scan(&fingerprint)
	return fingerprint, err
}

// readMaster reads the master secret. White space at the end of the file, such as a line end, is not part of it.
func readMaster(ctx context.Context, pool *pgxpool.Pool, file string) ([]byte, error) {
	if file == "" {
		return store.Secret(ctx, pool, "webhook_master")
	}
	key, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the webhook master: %w", err)
	}
	if key = bytes.TrimRightFunc(key, unicode.IsSpace); len(key) < minMaster {
		return nil, fmt.Errorf("the webhook master in %s has %d bytes; it needs %d or more", file, len(key), minMaster)
	}
	return key, nil
}

// Key returns the HMAC key of one version of an endpoint's secret, 32 bytes.
func (m *Master) Key(endpoint store.ID, version int) []byte {
	// Each version has a different key, so a rotation only increases the version.
	info := "aiv webhook secret\n" + endpoint.Text("wh") + "\n" + strconv.Itoa(version)
	key, err := hkdf.Key(sha256.New, m.key, nil, info, 32)
	if err != nil {
		panic(err) // 32 bytes are below HKDF's limit
	}
	return key
}

// secret returns the form in which a customer is given a version of an endpoint's secret.
func (m *Master) secret(endpoint store.ID, version int) string {
	return "whsec_" + base64.StdEncoding.EncodeToString(m.Key(endpoint, version))
}
