//! Programs of llama.cpp on the same file: their calls and failures, and `llama-bench`.

use std::path::Path;
use std::process::{Command, ExitStatus};

use super::{Failure, Work};

/// Lines of a program's stderr that an error shows.
const LINES: usize = 12;

/// Why a program gave no figures.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PeerError {
    #[error("{program} cannot be started: {source}")]
    Start { program: String, source: std::io::Error },
    #[error("{program} ended with {status}; {stderr}")]
    Failed {
        program: String,
        status: ExitStatus,
        stderr: String,
    },
    #[error("{program}: {source}; {stderr}")]
    Output {
        program: String,
        source: Box<dyn std::error::Error + Send + Sync>,
        stderr: String,
    },
}

/// What a program prints on stdout, read by `read`.
///
/// # Errors
/// The program cannot be started, fails, or prints what `read` refuses. The last lines of its stderr are in the error.
pub(crate) fn figures<T, E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    mut command: Command,
    read: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, PeerError> {
    let program = Path::new(command.get_program()).display().to_string();
    let output = match command.output() {
        Ok(output) => output,
        Err(source) => return Err(PeerError::Start { program, source }),
    };
    let stderr = last_lines(&String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        let status = output.status;
        return Err(PeerError::Failed {
            program,
            status,
            stderr,
        });
    }
    read(&String::from_utf8_lossy(&output.stdout)).map_err(|error| PeerError::Output {
        program,
        source: error.into(),
        stderr,
    })
}

fn last_lines(stderr: &str) -> String {
    let lines: Vec<&str> = stderr.lines().filter(|line| !line.trim().is_empty()).collect();
    match &lines[lines.len().saturating_sub(LINES)..] {
        [] => "its stderr is empty".to_owned(),
        last => format!("the last lines of its stderr:\n{}", last.join("\n")),
    }
}

/// Tokens a second of one run of `llama-bench`.
pub(crate) fn run(program: &Path, model: &Path, kv: &str, work: Work) -> Result<f64, Failure> {
    let (prompt, tokens, depth) = match work {
        Work::Prompt(tokens) => (tokens, 0, 0),
        Work::Decode { tokens, depth, .. } => (0, tokens, depth),
    };
    let mut command = Command::new(program);
    command
        .arg("-m")
        .arg(model)
        .args(["-ngl", "99", "-fa", "1", "-r", "1", "-o", "json"])
        .args(["-ctk", kv, "-ctv", kv])
        .args([
            "-p",
            &prompt.to_string(),
            "-n",
            &tokens.to_string(),
            "-d",
            &depth.to_string(),
        ]);
    Ok(figures(
        command,
        |text| -> Result<f64, Box<dyn std::error::Error + Send + Sync>> {
            let runs: serde_json::Value = serde_json::from_str(text)?;
            runs[0]["avg_ts"].as_f64().ok_or_else(|| "it printed no avg_ts".into())
        },
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_last_lines_of_stderr() {
        assert_eq!(last_lines("\n \n"), "its stderr is empty");
        let text: String = (0..40).map(|line| format!("line {line}\n\n")).collect();
        let last = last_lines(&text);
        assert!(
            last.ends_with("line 38\nline 39") && last.contains("line 28\n"),
            "{last}"
        );
        assert!(!last.contains("line 27\n"), "{last}");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let nothing = |_: &str| Ok::<(), String>(());
        let error = figures(Command::new("./no/such/program"), nothing).unwrap_err();
        assert!(
            error.to_string().starts_with("./no/such/program cannot be started: "),
            "{error}"
        );
    }
}
