// Package store connects the program to PostgreSQL: the connection pool and its session settings, the embedded
// migrations, the rights of other roles, identifiers, and the queries for pages of lists.
//
// It owns the tables schema_migrations, shared_secrets and audit_log; every other table belongs to the package that
// writes it. It is called by cmd/aiv, which opens and migrates the database, and by every package that has SQL.
package store
