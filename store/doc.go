// Package store is where aiv meets PostgreSQL: the connection pool, the
// embedded migrations, the private server that stands in when no database is
// configured, and what the capabilities share to write well.
//
// It owns one table, schema_migrations; every other table belongs to the
// capability that writes it. It is called by cmd/aiv, which opens and migrates
// the database, and by every package that has SQL.
//
// # The private server
//
// [StartPrivate] gives a program a PostgreSQL of its own in a folder. Three
// kinds of process take part, and the kernel's file locks are all that they
// say to each other, so that none can die in a way that the others miss:
//
//   - A user, any aiv command, holds users.lock shared for its life. Only then
//     does it look for a supervisor, and starts one where there is none.
//   - The supervisor, a detached copy of the program, holds supervisor.lock for
//     its life. It runs PostgreSQL, restarts it after a crash, and waits to get
//     users.lock exclusively, which the kernel grants when the last user is
//     gone, kill -9 included. It then stops the server, and exits.
//   - PostgreSQL is the supervisor's child and, on Linux, dies with it.
//
// A user that comes during the stop waits for its shared lock until the
// supervisor has exited, hence never sees a server that is about to go.
package store
