package service

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// EndOnHangup returns a context that is canceled when the terminal is closed, for a command that runs in one. A process
// that was started with SIGHUP ignored, as by nohup, continues. The function returned restores the default.
func EndOnHangup(ctx context.Context) (context.Context, context.CancelFunc) {
	if signal.Ignored(syscall.SIGHUP) {
		return ctx, func() {}
	}
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}

// SurvivePipe keeps SIGPIPE from ending a process when the reader of stdout or stderr has gone. Writes return an error
// instead. The default is never restored: a line of the log may be the last thing that a process writes.
func SurvivePipe() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// SurviveSignals is SurvivePipe, and also keeps SIGHUP from ending a service until restore is called: operators send it
// to have certificates read again.
func SurviveSignals(log *slog.Logger) (restore func()) {
	SurvivePipe()
	// A buffer of one is enough, because repeated signals mean the same.
	hangup, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangup, syscall.SIGHUP)
	go func() {
		for {
			select {
			case <-hangup:
				log.Info("SIGHUP ignored; changed certificates are read without a signal, other settings require a restart")
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(hangup)
		close(done)
	}
}
