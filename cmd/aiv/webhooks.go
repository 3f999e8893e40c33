package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/cmd/aiv/internal/cli"
	"aiv/cmd/aiv/internal/service"
	"aiv/insights/webhooks"
	"aiv/insights/webhooks/delivery"
	"aiv/store"
)

// webhooksGroup returns the commands of aiv webhooks.
func webhooksGroup() cli.Command {
	return cli.Command{
		Name:    "webhooks",
		Summary: "List, disable and enable webhooks, and receive their deliveries",
		Commands: []cli.Command{
			{
				Name:     "list",
				Summary:  "List the webhooks by account, oldest first",
				Usage:    "[-account ID] [-json]",
				Examples: []string{"aiv webhooks list", "aiv webhooks list -account acct_01k3s4x0a1fvt8s9w2y7b6c5d4 -json"},
				Run:      reading(webhooksList),
			},
			{
				Name:     "disable",
				Summary:  "Disable a webhook, so that only an operator can enable it again",
				Usage:    "ID [-json]",
				Examples: []string{"aiv webhooks disable wh_01k3s4x0a1fvt8s9w2y7b6c5d4"},
				Run:      changeWebhook((*webhooks.Admin).Disable),
			},
			{
				Name:     "enable",
				Summary:  "Enable a webhook, regardless of why it was disabled",
				Usage:    "ID [-json]",
				Examples: []string{"aiv webhooks enable wh_01k3s4x0a1fvt8s9w2y7b6c5d4"},
				Run:      changeWebhook((*webhooks.Admin).Enable),
			},
			{
				Name:     "listen",
				Summary:  "Receive deliveries, and print those whose signature is valid",
				Usage:    "-secret-file FILE|-secret SECRET [-addr HOST:PORT]",
				Examples: []string{"aiv webhooks listen -addr 127.0.0.1:8090 -secret-file webhook.secret"},
				Run:      command(webhooksListen),
			},
		},
	}
}

// A webhook as the webhooks commands print it. failing_since is the time of the first failed attempt after the latest
// success. It is null if none has failed since. A new URL and enabling clear it.
type webhook struct {
	ID             string   `json:"id"`
	AccountID      string   `json:"account_id"`
	URL            string   `json:"url"`
	Description    string   `json:"description"`
	Events         []string `json:"events"`
	Enabled        bool     `json:"enabled"`
	DisabledReason *string  `json:"disabled_reason"`
	FailingSince   *string  `json:"failing_since"`
	CreatedAt      string   `json:"created_at"`
	UpdatedAt      string   `json:"updated_at"`
}

// webhookOf derives Enabled: a webhook is enabled unless it has a reason not to be.
func webhookOf(e *webhooks.AdminEndpoint) webhook {
	return webhook{e.ID.Text("wh"), e.AccountID.Text("acct"), e.URL, e.Description, e.Events, e.DisabledReason == nil, e.DisabledReason,
		store.FormatTimeOrNil(e.FailingSince), store.FormatTime(e.CreatedAt), store.FormatTime(e.UpdatedAt)}
}

func (w *webhook) state() string {
	if w.Enabled {
		return "enabled"
	}
	return "disabled: " + *w.DisabledReason
}

// webhooksList lists webhooks of one account, or of all, without their secrets.
func webhooksList(ctx context.Context, c *call) error {
	var account *store.ID
	c.idFlag(&account, "account", "acct", "only the webhooks of the account with this `ID`")
	if _, err := c.Parse(); err != nil {
		return err
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		found, err := (&webhooks.Admin{Pool: pool}).List(ctx, account)
		if err != nil {
			return err
		}
		all, rows := []webhook{}, [][]string{{"ID", "ACCOUNT", "URL", "EVENTS", "STATE", "FAILING SINCE"}}
		for i := range found {
			w := webhookOf(&found[i])
			all = append(all, w)
			rows = append(rows, []string{w.ID, w.AccountID, w.URL, cli.List(w.Events), w.state(), humanTime(found[i].FailingSince, "no")})
		}
		return c.PrintList(all, rows, "There are no webhooks.")
	})
}

// changeWebhook returns the Run function of a command that changes a webhook and prints it.
func changeWebhook(change func(*webhooks.Admin, context.Context, store.ID) (*webhooks.AdminEndpoint, error)) func(context.Context, *cli.Call) error {
	return audited(func(ctx context.Context, c *call) error {
		id, _, err := c.parseWithID("wh")
		if err != nil {
			return err
		}
		return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
			changed, err := change(&webhooks.Admin{Pool: pool, Actor: c.actor()}, ctx, id)
			if errors.Is(err, webhooks.ErrEndpointNotFound) {
				return fmt.Errorf("there is no webhook %s; see aiv webhooks list", id.Text("wh"))
			}
			if err != nil {
				return err
			}
			w := webhookOf(changed)
			return c.Print(w, func(out io.Writer) { fmt.Fprintf(out, "Webhook %s, %s, is %s.\n", w.ID, w.URL, w.state()) })
		})
	})
}

// webhooksListen receives deliveries and prints those that are signed with the secret.
func webhooksListen(ctx context.Context, c *call) error {
	addr := c.Flags.String("addr", "127.0.0.1:8090", "listen on this `HOST:PORT`")
	file := c.Flags.String("secret-file", "", "the `FILE` with the secret of the webhook, whsec_…")
	secret := c.Flags.String("secret", "", "the `SECRET` itself, for a quick try: ps shows it")
	if _, err := c.Parse(); err != nil {
		return err
	}
	switch {
	case *file == "" && *secret == "":
		return c.Wrong("%s requires -secret-file or -secret", c.Name)
	case *file != "" && *secret != "":
		return c.Wrong("-secret-file and -secret name two secrets; give one of them")
	}
	if err := service.CheckAddress(c.Call, "-addr", *addr); err != nil {
		return err
	}
	var err error
	if *file != "" {
		if *secret, err = readSecret("-secret-file", *file); err != nil {
			return err
		}
	}
	receiver, err := delivery.NewReceiver(*secret)
	switch {
	case err != nil && *file != "":
		return fmt.Errorf("%s does not contain a webhook's secret: want whsec_… and nothing else", *file)
	case err != nil:
		return c.Wrong("-secret: %v", err)
	}
	ctx, stop := service.EndOnHangup(ctx)
	defer stop()
	l, err := service.Listen(ctx, *addr)
	if err != nil {
		return fmt.Errorf("-addr: %w", err)
	}
	fmt.Fprintf(c.Stderr, "Receiving deliveries at http://%s; stop with Ctrl-C.\n", l.Addr())
	server := &http.Server{Handler: &listener{receiver: receiver, out: c.Stdout, log: c.Stderr}, ReadTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10}
	// Close does not wait as Shutdown does: a delivery that is cut off is sent again.
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// A listener prints one line for each verified delivery: its id, its type and its body.
type listener struct {
	receiver *delivery.Receiver
	mu       sync.Mutex // of out and log
	out, log io.Writer
}

// maxDelivery is larger than the largest event.
const maxDelivery = 1 << 20

// ServeHTTP checks the signature before it parses the body, which may come from anyone.
func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxDelivery))
	if err == nil {
		err = l.receiver.Verify(r.Header, body, time.Now())
	}
	var event struct{ Type string }
	if err == nil {
		err = json.Unmarshal(body, &event)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		http.Error(w, "not a valid delivery", http.StatusBadRequest)
		fmt.Fprintf(l.log, "Rejected a request from %s: %v.\n", r.RemoteAddr, err)
		return
	}
	fmt.Fprintf(l.out, "%s %s %s\n", r.Header.Get("webhook-id"), event.Type, body)
	w.WriteHeader(http.StatusNoContent)
}
