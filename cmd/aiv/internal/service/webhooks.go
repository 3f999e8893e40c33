package service

import (
	"context"
	"errors"
	"net/netip"
	"strings"

	"aiv/cmd/aiv/internal/cli"
	"aiv/gateway"
	"aiv/insights/events"
	"aiv/insights/webhooks"
	"aiv/runs"
	"aiv/store"
)

// webhookOptions are the options of webhooks that both services have.
type webhookOptions struct {
	masterFile   string
	allowPrivate bool
}

// flags declares the flags of both services. aiv serve needs the master because it shows secrets, aiv dispatch
// because it signs.
func (o *webhookOptions) flags(c *cli.Call) {
	c.Flags.StringVar(&o.masterFile, "webhook-master", "", "derive the secrets of webhooks from this `FILE`, 32 bytes or more, instead of the database; all processes need the same one")
}

// privateWebhooksFlag declares the flag that allows webhooks to have private addresses.
func (o *Options) privateWebhooksFlag(c *cli.Call) {
	c.Flags.BoolVar(&o.webhooks.allowPrivate, "webhook-allow-private", false, "allow webhooks with http URLs and private addresses, for private networks and tests")
}

// networksFlag declares a flag for a list of networks.
func networksFlag(c *cli.Call, to *[]netip.Prefix, name, usage string) {
	c.Flags.Func(name, usage, func(list string) error {
		for text := range strings.SplitSeq(list, ",") {
			network, err := parseNetwork(strings.TrimSpace(text))
			if err != nil {
				return errors.New("must be a comma-separated list of networks such as 192.0.2.0/24")
			}
			*to = append(*to, network)
		}
		return nil
	})
}

// parseNetwork parses a network. One of IPv4-mapped addresses is an IPv4 network, as the addresses of connections are.
func parseNetwork(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	// An IPv4-mapped address begins with 96 fixed bits.
	if bits := p.Bits() - 96; err == nil && bits >= 0 && p.Addr().Is4In6() {
		p = netip.PrefixFrom(p.Addr().Unmap(), bits)
	}
	return p.Masked(), err
}

// RecordFinished records the events of runs that the transaction makes final.
func RecordFinished(ctx context.Context, tx store.Tx, finished []runs.Run) error {
	causes := make([]events.Cause, len(finished))
	for i := range finished {
		r := &finished[i]
		causes[i] = events.Cause{AccountID: r.AccountID, ID: store.NewID(), Type: "run." + r.Status, SubjectID: r.ID, Data: gateway.EncodeRun(r)}
	}
	return webhooks.Record(ctx, tx, causes)
}
