//! The `orchestrator` binary: parses the command line and runs one command.

use std::process::ExitCode;

fn main() -> ExitCode {
    orchestrator::cli::main()
}
