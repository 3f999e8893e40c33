// Package webhooks queues deliveries of events to the endpoints that accounts register, after [Standard Webhooks].
//
// It owns the tables webhook_endpoints, webhook_deliveries, webhook_queues, webhook_hosts and webhook_master, and reads
// events, which package events owns. The packages that change a run, an alert or a recommendation call Record in their
// transaction, as an [events.Recorder]. The gateway calls Webhooks for the routes /v1/webhooks. Command aiv calls Admin
// for operators. Package delivery delivers: it claims queues, and updates deliveries and the health of endpoints.
//
// Transactions of both packages lock rows in this order: an endpoint, a host name, deliveries in the order (account,
// event, endpoint), queues in the order of accounts. Record and Create lock queues first. This is safe: the foreign
// keys of Record's new deliveries do not conflict with changes of endpoints, and Create waits only for transactions
// that are adding its URL, which wait for no queue afterwards.
//
// [Standard Webhooks]: https://www.standardwebhooks.com
package webhooks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// All, as the only element of Endpoint.Events, subscribes to every type of event.
const All = "*"

// The reasons why an endpoint is disabled.
const (
	ByCustomer = "customer"
	ByOperator = "operator" // only an operator can enable the endpoint again
	Gone       = "gone"     // it responded with 410
	Failing    = "failing"  // no attempt succeeded for three days in which attempts failed
)

// An Endpoint is an address to which an account's events are delivered. Its secret is not stored; see Master. A
// deleted endpoint keeps its row until Purge has deleted its deliveries.
type Endpoint struct {
	ID             store.ID
	URL            string
	Description    string
	Events         []string // types, or All alone
	DisabledReason *string  // nil: enabled
	CreatedAt      time.Time
	UpdatedAt      time.Time
}

// A Delivery is the state of one event's delivery to one endpoint.
type Delivery struct {
	EventID       store.ID
	Type          string // of the event
	Status        string // one of DeliveryStatuses
	Attempts      int
	LastStatus    *int    // of the latest response
	LastError     *string // one of the Error constants; nil: the latest attempt succeeded, or there was none
	NextAttemptAt *time.Time
	CreatedAt     time.Time
	DeliveredAt   *time.Time
}

// DeliveryStatuses returns the states of a delivery.
func DeliveryStatuses() []string { return []string{"pending", "delivered", "failed"} }

// The values of Delivery.LastError.
const (
	ErrorStatus     = "status"
	ErrorTimeout    = "timeout"
	ErrorConnection = "connection"
	ErrorTLS        = "tls"
	ErrorRedirect   = "redirect"
	ErrorBlocked    = "blocked"
)

// Limits of the API.
const (
	MaxEndpoints   = 10 // of an account
	MaxURL         = 2048
	MaxDescription = 256 // characters
	maxRequested   = 10  // pending tests and resends of an endpoint
	maxPerHost     = 10  // tests and resends per second to one host name

	// The previous secret signs for RotationPeriod after a rotation.
	RotationPeriod = 24 * time.Hour
)

// Errors on which callers decide. None contains an id.
var (
	ErrEndpointNotFound = errors.New("the account has no such webhook")
	ErrEndpointExists   = errors.New("the account has a webhook with this URL")
	ErrTooManyEndpoints = fmt.Errorf("the account has %d webhooks, the maximum", MaxEndpoints)
	ErrDisabled         = errors.New("the webhook is disabled")
)

// TooManyDeliveriesError reports that a test or a resend exceeds a limit.
type TooManyDeliveriesError struct{ RetryAfter time.Duration }

func (e *TooManyDeliveriesError) Error() string {
	return fmt.Sprintf("too many tests and resends; retry after %v", e.RetryAfter)
}

// Config is what Webhooks needs.
type Config struct {
	Pool         *pgxpool.Pool
	Master       *Master
	AllowPrivate bool // accept http URLs
	NewID        func() store.ID
}

// Webhooks serves the routes of one process.
type Webhooks struct{ cfg Config }

// New returns Webhooks.
func New(cfg Config) *Webhooks { return &Webhooks{cfg} }

// ParseURL returns a URL as it is stored, or an error that describes why an account cannot register it.
func (w *Webhooks) ParseURL(text string) (string, error) { return parseURL(text, w.cfg.AllowPrivate) }

// A Backlog describes the pending deliveries of all accounts.
type Backlog struct {
	Pending int           // counted up to a maximum; also of disabled endpoints, and waiting for a retry
	Lag     time.Duration // how long the oldest due delivery to an enabled endpoint has been due
}

// ReadBacklog reads the backlog. Its cost does not grow with the number of deliveries: it counts up to most.
func ReadBacklog(ctx context.Context, pool *pgxpool.Pool, most int) (b Backlog, err error) {
	// The lag is computed from the queues of up to this number of accounts.
	const accounts = 200
	var seconds float64
	err = pool.QueryRow(ctx, readBacklog, store.OnCitus(citusBacklog), accounts, most).Scan(&b.Pending, &seconds)
	// It is negative if no delivery is due yet.
	b.Lag = max(0, time.Duration(seconds*float64(time.Second)))
	return b, err
}

// One transaction deletes up to purgeStep rows.
const purgeStep = 500

// Purge deletes the deliveries of deleted endpoints in small steps, then the endpoints. Other deliveries are deleted
// with their events.
func Purge(ctx context.Context, pool *pgxpool.Pool) error {
	// A row of webhook_hosts limits the requests to a host name in one second.
	if _, err := pool.Exec(ctx, deleteHosts); err != nil {
		return err
	}
	return purgeEndpoints(ctx, pool)
}

// A deletedEndpoint is a deleted endpoint whose row still exists. Old means that it was deleted over an hour ago.
type deletedEndpoint struct {
	Account, ID store.ID
	Old         bool
}

// purgeEndpoints deletes the deliveries of all deleted endpoints, and the old endpoints themselves. Those that are not
// old stay, because a transaction that began before their deletion may still queue deliveries to them.
func purgeEndpoints(ctx context.Context, pool *pgxpool.Pool) error {
	endpoints, err := store.Collect(ctx, pool, pgx.RowToStructByPos[deletedEndpoint], deletedEndpoints)
	if err != nil {
		return err
	}
	for _, e := range endpoints {
		_, err := store.ExecInSteps(ctx, pool, purgeStep, deleteDeliveries, e.Account, e.ID)
		if err == nil && e.Old {
			_, err = pool.Exec(ctx, removeEndpoint, e.Account, e.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
