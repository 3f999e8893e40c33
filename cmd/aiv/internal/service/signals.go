package service

import (
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// SurviveSignals keeps two signals from ending a serving process: SIGPIPE, when the reader of stdout or stderr has gone, and
// SIGHUP, when the terminal has. Writes return an error instead. The function returned restores the defaults; the log must be
// closed before, because that writes its last lines.
func SurviveSignals(log *slog.Logger) (restore func()) {
	pipe, hangup, done := make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(pipe, syscall.SIGPIPE)
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
		signal.Stop(pipe)
		signal.Stop(hangup)
		close(done)
	}
}
