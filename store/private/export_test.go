package private

// Exported for the tests, which are an external package because storetest imports this one.

const SupervisorEnv = supervisorEnv

var (
	FindBinaries = findBinaries
	SocketDir    = socketDir
)
