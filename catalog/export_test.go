package catalog

import (
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// NewPatient returns the catalog of a database, whose loads may wait for as long as a test holds a lock.
func NewPatient(pool *pgxpool.Pool) *Catalog { return newCatalog(pool, time.Minute) }
