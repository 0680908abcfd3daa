//! `rocmforge-sanitize`: see `docs/sanitize.md`.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = rocmforge_sanitize::Cli::parse();
    let exit = rocmforge_sanitize::main(&cli, &mut std::io::stdout(), &mut std::io::stderr());
    ExitCode::from(exit.status(&cli))
}
