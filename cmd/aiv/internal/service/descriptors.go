package service

import "syscall"

// defaultConnections returns how many client connections fit into the descriptor limit, with room for the database's
// connections while they are replaced, the admin listener and files. 16,384 idle ones take about 300 MB.
func defaultConnections(databaseConns int) int {
	const most, reserved = 16_384, 48
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > most+1000 {
		return most
	}
	return max(16, min(most, int(limit.Cur)-databaseConns-reserved))
}
