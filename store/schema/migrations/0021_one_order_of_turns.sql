-- oldest-compatible: 0019

-- One order of turns serves all claims. Older binaries still write any_turn, so the column has a default instead of being dropped.
DROP INDEX job_turns_next_of_any;
ALTER TABLE job_turns ALTER any_turn SET DEFAULT 0;
