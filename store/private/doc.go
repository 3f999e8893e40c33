// Package private runs a PostgreSQL server in a folder for programs that were given no database URL. It owns no tables.
// cmd/aiv and storetest call it.
//
// Three kinds of process take part. They communicate only by file locks, which the kernel releases however a process
// ends, so that no process can miss the end of another:
//
//   - A user, which is any aiv command, holds users.lock shared until it ends. While it holds the lock it looks for a
//     supervisor, and starts one if there is none.
//   - The supervisor, a detached copy of the program, holds supervisor.lock until it ends. It runs PostgreSQL, restarts
//     it after a crash, and waits for users.lock exclusively, which the kernel grants when the last user has ended. It
//     then stops the server, and exits.
//   - PostgreSQL is the supervisor's child and, on Linux, ends with it.
//
// A user that ends waits for the stop if it was the last. If the supervisor was killed, the user cleans up instead.
// leaving.lock makes users look for that one after another: each tries the other two locks, and none may take such a
// try for a user.
//
// A user that starts during the stop waits for its shared lock until the supervisor has exited. It therefore never
// connects to a server that is stopping.
package private
