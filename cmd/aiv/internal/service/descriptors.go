package service

import "syscall"

// Bounds of what takes descriptors besides the connections to the database.
const (
	maxClients          = 16_384 // connections of clients; idle ones take about 300 MB
	maxDeliveries       = 1024   // webhook requests at a time
	reservedDescriptors = 48     // for the database's connections while they are replaced, the admin listener and files
)

// maxDescriptors returns how many descriptors the process may have.
func maxDescriptors() int {
	const unlimited = 1 << 30
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return unlimited
	}
	return int(min(limit.Cur, unlimited))
}

// defaultConnections returns how many client connections fit into a number of descriptors beside those that the process
// opens itself.
func defaultConnections(descriptors, opened int) int {
	return max(16, min(maxClients, descriptors-opened-reservedDescriptors))
}

// deliveriesWithin returns how many webhook requests may be in flight at a time. It also returns how many connections
// they and the idle ones use: at most a quarter of the descriptors.
func deliveriesWithin(descriptors int) (requests, connections int) {
	requests = max(16, min(maxDeliveries, descriptors/6))
	return requests, requests + requests/2
}
