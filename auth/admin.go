package auth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// Admin runs the operations of an operator. It records each change in audit_log, in the transaction of the change.
type Admin struct {
	Pool  *pgxpool.Pool
	Actor string // the operator, for audit_log
}

// An Account is a customer.
type Account struct {
	ID        store.ID
	Name      string
	PlanCode  string
	CreatedAt time.Time

	OwnQuota     bool   // whether JobsPerMonth replaces the plan's
	JobsPerMonth *int64 // nil: no quota

	ErasedAt *time.Time // when its erasure began
}

// codePattern is the form of the codes of plans and features.
var codePattern = store.Pattern(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// SetPlan creates or changes a plan. A change applies from the next request on.
func (a *Admin) SetPlan(ctx context.Context, p Plan) error {
	if err := p.Check(); err != nil {
		return err
	}
	features := unique(p.Features)
	return a.changeIdentity(ctx, "plans.set", p.Code, map[string]any{"features": features, "rate_limit_per_minute": p.RateLimit,
		"jobs_per_month": p.JobsPerMonth, "max_unfinished_jobs": p.MaxUnfinishedJobs},
		func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, setPlan, p.Code, features, p.RateLimit, p.JobsPerMonth, p.MaxUnfinishedJobs)
			return err
		})
}

// Check returns an error if no plan can have these settings.
func (p *Plan) Check() error {
	if !codePattern().MatchString(p.Code) {
		return fmt.Errorf("invalid plan code %q: use 1 to 64 of a-z, 0-9, _ and -, starting with a letter or digit", p.Code)
	}
	for _, f := range p.Features {
		if !codePattern().MatchString(f) {
			return fmt.Errorf("invalid feature %q: use 1 to 64 of a-z, 0-9, _ and -, starting with a letter or digit", f)
		}
	}
	if err := checkRateLimit(p.RateLimit); err != nil {
		return err
	}
	if err := checkJobs(p.JobsPerMonth); err != nil {
		return err
	}
	return checkJobs(p.MaxUnfinishedJobs)
}

// Plans lists the plans by code.
func (a *Admin) Plans(ctx context.Context) ([]Plan, error) {
	return store.Collect(ctx, a.Pool, pgx.RowToStructByPos[Plan], listPlans)
}

// CreateAccount creates an account with an existing plan.
func (a *Admin) CreateAccount(ctx context.Context, name, plan string) (Account, error) {
	if strings.TrimSpace(name) == "" {
		return Account{}, errors.New("the account name is empty")
	}
	account := Account{ID: store.NewID(), Name: name, PlanCode: plan}
	err := a.changeIdentity(ctx, "accounts.create", account.ID.Text("acct"), map[string]any{"name": name, "plan": plan},
		func(tx pgx.Tx) error {
			err := tx.QueryRow(ctx, createAccount, account.ID, name, plan).Scan(&account.CreatedAt)
			return unknownPlan(err, plan)
		})
	return account, err
}

// Accounts lists the accounts, oldest first.
func (a *Admin) Accounts(ctx context.Context) ([]Account, error) {
	return store.Collect(ctx, a.Pool, pgx.RowToStructByPos[Account], listAccounts)
}

// Account returns an account.
func (a *Admin) Account(ctx context.Context, id store.ID) (Account, error) {
	return readAccount(ctx, a.Pool, oneAccount, id)
}

// readAccount reads an account by a statement whose first parameter is the id.
func readAccount(ctx context.Context, db store.Querier, sql string, id store.ID, others ...any) (Account, error) {
	a, err := store.CollectOne(ctx, db, pgx.RowToStructByPos[Account], sql, append([]any{id}, others...)...)
	if errors.Is(err, pgx.ErrNoRows) {
		err = fmt.Errorf("there is no account %s; see aiv accounts list", id.Text("acct"))
	}
	return a, err
}

// SetAccountPlan moves an account to another plan, from the next request on.
func (a *Admin) SetAccountPlan(ctx context.Context, id store.ID, plan string) (account Account, err error) {
	err = a.changeIdentity(ctx, "accounts.set-plan", id.Text("acct"), map[string]any{"plan": plan}, func(tx pgx.Tx) (err error) {
		account, err = readAccount(ctx, tx, setAccountPlan, id, plan)
		return unknownPlan(err, plan)
	})
	return account, err
}

// SetAccountQuota sets how many jobs an account may order in a month, from the next request on. Without own, the plan
// decides; with own and no number, the account has no quota.
func (a *Admin) SetAccountQuota(ctx context.Context, id store.ID, own bool, jobsPerMonth *int64) (account Account, err error) {
	if err := checkJobs(jobsPerMonth); err != nil {
		return Account{}, err
	}
	detail := map[string]any{"own_quota": own, "jobs_per_month": jobsPerMonth}
	err = a.changeIdentity(ctx, "accounts.set-quota", id.Text("acct"), detail, func(tx pgx.Tx) (err error) {
		account, err = readAccount(ctx, tx, setAccountQuota, id, own, jobsPerMonth)
		return err
	})
	return account, err
}

// change runs f and writes its audit record in one transaction, which may be repeated: on Citus the wait for a lock ends
// after a second.
func (a *Admin) change(ctx context.Context, action, subject string, detail map[string]any, f func(pgx.Tx) error) error {
	return store.Repeat(ctx, a.Pool, func(tx pgx.Tx) error {
		if err := f(tx); err != nil {
			return err
		}
		return store.Audit(ctx, tx, store.Change{Actor: a.Actor, Action: action, Subject: subject, Detail: detail})
	})
}

// changeIdentity is change for what cached credentials contain.
func (a *Admin) changeIdentity(ctx context.Context, action, subject string, detail map[string]any, f func(pgx.Tx) error) error {
	return a.change(ctx, action, subject, detail, func(tx pgx.Tx) error {
		if err := revise(ctx, tx); err != nil {
			return err
		}
		return f(tx)
	})
}

// revise changes the revision of all credentials in a database distributed by Citus. It must be the first change of a
// transaction, so that such transactions run one after another: two that had locked an account, as mayHaveKeys does,
// would deadlock at their next change. On plain PostgreSQL triggers change the revision, after rows are locked.
func revise(ctx context.Context, tx pgx.Tx) error {
	if !store.IsCitus(tx.Conn()) {
		return nil
	}
	_, err := tx.Exec(ctx, nextRevision)
	return err
}

// unknownPlan explains a violation of the foreign key to plans.
func unknownPlan(err error, plan string) error {
	if store.IsForeignKeyViolation(err) {
		return fmt.Errorf("there is no plan %q; see aiv plans list", plan)
	}
	return err
}

func checkRateLimit(n *int) error {
	if n != nil && (*n < 1 || *n > MaxRateLimit) {
		return fmt.Errorf("invalid rate limit %d: use 1 to %d requests per minute", *n, MaxRateLimit)
	}
	return nil
}

func checkJobs(n *int64) error {
	if n != nil && *n < 0 {
		return fmt.Errorf("%d jobs: the number must not be negative", *n)
	}
	return nil
}

// unique returns the distinct elements of all, in order.
func unique(all []string) []string {
	out := make([]string, 0, len(all))
	for _, w := range all {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// BeginErasing marks an account as erased and revokes all its keys, so that no request can add to its data. It returns
// how long ago, by the database's clock, the latest of them was revoked, or a day if there are none.
func (a *Admin) BeginErasing(ctx context.Context, id store.ID) (revoked time.Duration, err error) {
	err = a.changeIdentity(ctx, "accounts.erase", id.Text("acct"), nil, func(tx pgx.Tx) error {
		// The account is locked before its credentials, as mayHaveKeys does.
		for _, sql := range []string{lockErased, revokeAccount, beginErasing} {
			if _, err := tx.Exec(ctx, sql, id); err != nil {
				return err
			}
		}
		return tx.QueryRow(ctx, sinceRevocation, id).Scan(&revoked)
	})
	return max(0, revoked), err // the database's clock may have been ahead then
}

// EndErasing deletes the credentials of an account and replaces its name. No row must refer to the credentials. The
// account itself stays, with its usage totals.
func (a *Admin) EndErasing(ctx context.Context, id store.ID) error {
	return store.Step(ctx, a.Pool, func(tx pgx.Tx) error {
		if err := revise(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, deleteCredentials, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, renameAccount, id); err != nil {
			return err
		}
		return store.Audit(ctx, tx, store.Change{Actor: a.Actor, Action: "accounts.erase.end", Subject: id.Text("acct")})
	})
}
