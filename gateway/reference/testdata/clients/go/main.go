// The program lists runs, creates one and reads its results and metrics, by the client that oapi-codegen generates from
// the OpenAPI document. .ci/run compiles it outside the repository, with the generated package, and runs it against aiv
// demo.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"example.com/client/aiv"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	authorize := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+os.Getenv("KEY"))
		return nil
	}
	client, err := aiv.NewClientWithResponses(os.Getenv("BASE"), aiv.WithRequestEditorFn(authorize))
	if err != nil {
		return err
	}

	listed, err := client.ListRunsWithResponse(ctx, &aiv.ListRunsParams{Limit: new(2)})
	if err != nil {
		return err
	}
	if listed.JSON200 == nil || len(listed.JSON200.Data) != 2 {
		return fmt.Errorf("listing runs: %s %s", listed.Status(), listed.Body)
	}

	created, err := client.CreateRunWithResponse(ctx, &aiv.CreateRunParams{IdempotencyKey: rand.Text()}, aiv.NewRun{
		ModelIds: []string{"openai/gpt-5-search"}, QuestionIds: []string{"it-running-shoes"}, Repetitions: 2,
		MeasurementType: "grounded", Locale: "it-IT", Country: "IT", Language: "it",
	})
	if err != nil {
		return err
	}
	if created.JSON202 == nil {
		return fmt.Errorf("creating a run: %s %s", created.Status(), created.Body)
	}

	id := created.JSON202.Id
	for status := aiv.RunStatusQueued; status != aiv.RunStatusCompleted; {
		read, err := client.GetRunWithResponse(ctx, id)
		if err != nil {
			return err
		}
		if read.JSON200 == nil {
			return fmt.Errorf("reading %s: %s %s", id, read.Status(), read.Body)
		}
		status = read.JSON200.Status
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return fmt.Errorf("%s is %s", id, status)
		}
	}

	results, err := client.ListResultsWithResponse(ctx, id, nil)
	if err != nil {
		return err
	}
	if results.JSON200 == nil || len(results.JSON200.Data) != 2 {
		return fmt.Errorf("listing the results of %s: %s %s", id, results.Status(), results.Body)
	}
	for _, r := range results.JSON200.Data {
		if r.Answer == nil || r.Error != nil || r.Answer.AnsweredAt.IsZero() {
			return fmt.Errorf("%s has no answer", r.Id)
		}
		fmt.Printf("%s answers %s with %d citations\n", r.ModelId, r.QuestionId, len(r.Answer.Citations))
	}

	query := &aiv.GetMetricsParams{RunId: &id, GroupBy: &[]aiv.Dimension{aiv.DimensionModel, aiv.DimensionTopic}}
	metrics, err := client.GetMetricsWithResponse(ctx, query)
	if err != nil {
		return err
	}
	if m := metrics.JSON200; m == nil || !m.Complete || m.Answers.Ok != 2 || m.From != nil {
		return fmt.Errorf("reading the metrics of %s: %s %s", id, metrics.Status(), metrics.Body)
	}
	asCSV := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Accept", "text/csv")
		return nil
	}
	table, err := client.GetMetricsWithResponse(ctx, query, asCSV)
	if err != nil {
		return err
	}
	if table.StatusCode() != http.StatusOK || !strings.HasPrefix(string(table.Body), "model_id,topic,brand_id,") {
		return fmt.Errorf("reading the metrics of %s as CSV: %s %s", id, table.Status(), table.Body)
	}

	refused, err := client.GetRunWithResponse(ctx, "run_00000000000000000000000000")
	if err != nil {
		return err
	}
	if p := refused.ApplicationproblemJSON404; p == nil || p.Code != aiv.ProblemCodeRunNotFound {
		return fmt.Errorf("reading an unknown run: %s %s", refused.Status(), refused.Body)
	}
	return nil
}
