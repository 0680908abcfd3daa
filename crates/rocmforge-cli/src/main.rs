//! The program `rocmforge`: fetches language models and runs them on AMD GPUs or the CPU.
//!
//! Each command is a module; what they share are [`options`], the [`machine`] that a model runs on, the [`store`] of models and [`progress`].
#![allow(clippy::print_stderr)] // it is a program for people

mod bench;
mod cards;
mod chat;
mod doctor;
mod failure;
mod fit;
mod folders;
mod kv_events;
mod load;
mod logits;
mod machine;
mod models;
mod options;
mod place;
mod progress;
mod ps;
mod pull;
mod report;
mod run;
mod serve;
mod store;
mod table;
mod tune;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use failure::Failure;

/// Runs language models on AMD GPUs that also draw the screen, and on the CPU.
#[derive(Debug, Parser)]
#[command(name = "rocmforge", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<run::Args>),
    Chat(Box<chat::Args>),
    Serve(Box<serve::Args>),
    Ps(ps::Args),
    Bench(bench::Args),
    Fit(Box<fit::Args>),
    Doctor(Box<doctor::Args>),
    Tune(Box<tune::Args>),
    Pull(pull::Args),
    /// Shows the models that are here.
    List(models::ListArgs),
    /// Says what a model is.
    Show(models::ShowArgs),
    /// Removes models.
    Rm(models::RemoveArgs),
    /// Prints the completions of a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Prints the manual page.
    Man {
        /// Writes the pages of all commands into this folder instead.
        folder: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    failure::exit_code(run(&Cli::parse().command))
}

fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Run(args) => run::run(args),
        Command::Chat(args) => chat::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Serve(args) => serve::run(args),
        Command::Ps(args) => ps::run(args),
        Command::Fit(args) => fit::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Tune(args) => tune::run(args),
        Command::Pull(args) => pull::run(args),
        Command::List(args) => models::list(args),
        Command::Show(args) => models::show(args),
        Command::Rm(args) => models::remove(args),
        Command::Completions { shell } => {
            // The generator panics where it cannot write.
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "rocmforge", &mut text);
            Ok(std::io::stdout().write_all(&text)?)
        }
        Command::Man { folder: None } => Ok(clap_mangen::Man::new(Cli::command()).render(&mut std::io::stdout())?),
        Command::Man { folder: Some(folder) } => {
            std::fs::create_dir_all(folder)?;
            Ok(clap_mangen::generate_to(Cli::command(), folder)?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_do_not_contradict_each_other() {
        Cli::command().debug_assert();
    }
}
