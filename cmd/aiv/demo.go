package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/catalog"
	"aiv/gateway"
	"aiv/store"
)

// demoCatalog is a believable catalog, as `aiv catalog import` reads it.
//
//go:embed demo_catalog.jsonl
var demoCatalog []byte

// demoReady are the providers of which the demonstration pretends that everything is met. The others show what a client
// sees while something is not.
var demoReady = []string{"openai", "google", "perplexity", "mistral"}

const demoAccount = "Demo"

func demo(ctx context.Context, c *call) error {
	c.databaseFlags()
	options := c.serveFlags()
	if _, err := c.parse(); err != nil {
		return err
	}
	o, err := options()
	if err != nil {
		return err
	}
	source, err := c.source()
	if err != nil {
		return err
	}
	log := c.logger(o.level)
	pool, closeDatabase, err := openDatabase(ctx, source, int32(o.maxConns), log)
	if err != nil {
		return err
	}
	defer closeDatabase()
	if _, err := store.Migrate(ctx, pool); err != nil {
		return err
	}
	key, err := fillDemo(ctx, pool)
	if err != nil {
		return err
	}
	public, admin, err := o.listenSomewhere(ctx)
	if err != nil {
		return err
	}
	scheme := "http"
	if o.tlsCert != "" {
		scheme = "https"
	}
	err = demoText.Execute(c.stdout, map[string]string{
		"Base": scheme + "://" + public.Addr().String() + gateway.Base, "Admin": "http://" + admin.Addr().String(), "Key": key,
	})
	if err != nil {
		return err
	}
	return o.serve(ctx, pool, slog.New(quiet{log.Handler()}), public, admin)
}

// listenSomewhere takes a free port where the default one is taken: a demonstration should not fail for that.
func (o *serveOptions) listenSomewhere(ctx context.Context) (public, admin net.Listener, err error) {
	public, admin, err = o.listen(ctx)
	if !errors.Is(err, syscall.EADDRINUSE) || o.addr != defaultAddr && o.adminAddr != defaultAdminAddr {
		return public, admin, err
	}
	if o.addr == defaultAddr {
		o.addr = "127.0.0.1:0"
	}
	if o.adminAddr == defaultAdminAddr {
		o.adminAddr = "127.0.0.1:0"
	}
	return o.listen(ctx)
}

// fillDemo writes the sample data, where it is not there yet, and issues a fresh key.
func fillDemo(ctx context.Context, pool *pgxpool.Pool) (key string, err error) {
	const actor = "aiv demo"
	admin := &auth.Admin{Pool: pool, Actor: actor, NewID: store.NewID}
	rate := 600
	if err := admin.SetPlan(ctx, auth.Plan{Code: "demo", Features: []string{auth.APIAccess}, RateLimit: &rate}); err != nil {
		return "", err
	}
	account, err := demoCustomer(ctx, admin)
	if err != nil {
		return "", err
	}
	shelf := &catalog.Admin{Pool: pool, Actor: actor}
	if _, err := shelf.Import(ctx, bytes.NewReader(demoCatalog)); err != nil {
		return "", fmt.Errorf("the sample catalog: %w", err)
	}
	providers, err := catalog.Providers(ctx, pool)
	if err != nil {
		return "", err
	}
	for _, p := range providers {
		if err := demoProvider(ctx, shelf, &p); err != nil {
			return "", err
		}
	}
	issued, err := admin.CreateKey(ctx, account.ID, auth.Terms{Name: new("demo"), Scopes: auth.Scopes})
	if err != nil {
		return "", err
	}
	past := demoPast{pool: pool, account: account, actor: actor}
	return issued.Key, past.write(ctx, issued.ID)
}

func demoCustomer(ctx context.Context, admin *auth.Admin) (auth.Account, error) {
	accounts, err := admin.Accounts(ctx)
	if err != nil {
		return auth.Account{}, err
	}
	for _, a := range accounts {
		if a.Name == demoAccount && a.PlanCode == "demo" {
			return a, nil
		}
	}
	return admin.CreateAccount(ctx, demoAccount, "demo")
}
