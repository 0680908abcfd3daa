//! llama.cpp's `llama-batched-bench` on the same file: its options, and the lines that it prints.

use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use super::Failure;
use super::peer::figures;

/// What one call measures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// Sequences of each batch.
    pub(crate) batches: &'a [usize],
    /// Tokens of each sequence before decoding; our own runs begin with one where this is 0.
    pub(crate) depth: usize,
    /// Tokens that are decoded of each sequence.
    pub(crate) tokens: usize,
}

/// Characters of a line that an error shows.
const SHOWN: usize = 120;
/// The program gives each sequence a cache of whole multiples of this.
const CACHE_MULTIPLE: usize = 256;

/// A line of the program's output, without the fields that nothing is compared with.
#[derive(Debug, Deserialize)]
struct Row {
    /// Tokens of each prompt.
    pp: usize,
    /// Tokens that were decoded of each sequence.
    tg: usize,
    /// Sequences.
    pl: usize,
    /// Decoded tokens a second, of all sequences together.
    speed_tg: f64,
}

/// Why its output has no figures.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RowError {
    #[error("it printed no line of JSON")]
    NoRows,
    #[error("its line {line:?} is not a row: {source}")]
    NotARow { line: String, source: serde_json::Error },
    #[error("it printed no row of {batch} sequences with {prompt} and {tokens} tokens")]
    Missing { batch: usize, prompt: usize, tokens: usize },
    #[error("its row of {batch} sequences has {speed} tokens a second")]
    NotASpeed { batch: usize, speed: f64 },
}

impl Asked<'_> {
    /// Prompts of no token have no speed, which the program then prints as `nan`.
    fn prompt(&self) -> usize {
        self.depth.max(1)
    }

    /// Tokens that the caches of the largest batch hold. The program leaves out a batch that needs more.
    fn context(&self) -> usize {
        let most = self.batches.iter().copied().max().unwrap_or(1);
        let tokens = self.prompt().saturating_add(self.tokens);
        let whole = tokens.checked_next_multiple_of(CACHE_MULTIPLE).unwrap_or(tokens);
        most.saturating_mul(whole)
    }

    /// The options of the call.
    fn options(&self, kv: &str) -> Vec<String> {
        let batches: Vec<String> = self.batches.iter().map(usize::to_string).collect();
        let pairs = [
            ("-npl", batches.join(",")),
            ("-npp", self.prompt().to_string()),
            ("-ntg", self.tokens.to_string()),
            ("-c", self.context().to_string()),
            ("-ngl", "99".to_owned()),
            ("-fa", "on".to_owned()),
            ("-ctk", kv.to_owned()),
            ("-ctv", kv.to_owned()),
            ("--output-format", "jsonl".to_owned()),
        ];
        pairs
            .into_iter()
            .flat_map(|(name, value)| [name.to_owned(), value])
            .collect()
    }

    /// The decoded tokens a second of each batch, in the order of the batches.
    ///
    /// # Errors
    /// No line begins like a row, such a line cannot be read, or the row or the speed of a batch is missing.
    fn speeds(&self, stdout: &str) -> Result<Vec<f64>, RowError> {
        let lines = stdout.lines().map(str::trim).filter(|line| line.starts_with('{'));
        let rows = lines.map(|line| {
            serde_json::from_str::<Row>(line).map_err(|source| RowError::NotARow {
                line: line.chars().take(SHOWN).collect(),
                source,
            })
        });
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        if rows.is_empty() {
            return Err(RowError::NoRows);
        }
        let (prompt, tokens) = (self.prompt(), self.tokens);
        let speed = |&batch: &usize| {
            let found = rows
                .iter()
                .find(|row| [row.pl, row.pp, row.tg] == [batch, prompt, tokens]);
            let speed = found
                .map(|row| row.speed_tg)
                .ok_or(RowError::Missing { batch, prompt, tokens })?;
            match speed > 0.0 {
                true => Ok(speed),
                false => Err(RowError::NotASpeed { batch, speed }),
            }
        };
        self.batches.iter().map(speed).collect()
    }
}

/// The decoded tokens a second of each batch in one run, in the order of the batches.
///
/// # Errors
/// The program cannot be started, fails, or prints no row for a batch.
pub(crate) fn run(program: &Path, model: &Path, kv: &str, asked: Asked<'_>) -> Result<Vec<f64>, Failure> {
    let mut command = Command::new(program);
    command.arg("-m").arg(model).args(asked.options(kv));
    Ok(figures(command, |text| asked.speeds(text))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the program of llama-cpp-python 0.3.36 printed for the shape `tiny` on a CPU.
    const PRINTED: &str = r#"{"n_kv_max": 2048, "n_batch": 2048, "n_ubatch": 512, "flash_attn": 1, "is_pp_shared": 0, "n_gpu_layers": 99, "n_threads": 2, "n_threads_batch": 2, "pp": 20, "tg": 4, "pl": 1, "n_kv": 24, "t_pp": 0.017171, "speed_pp": 1164.754639, "t_tg": 0.455111, "speed_tg": 8.789064, "t": 0.472282, "speed": 50.817097}
{"n_kv_max": 2048, "n_batch": 2048, "n_ubatch": 512, "flash_attn": 1, "is_pp_shared": 0, "n_gpu_layers": 99, "n_threads": 2, "n_threads_batch": 2, "pp": 20, "tg": 4, "pl": 8, "n_kv": 192, "t_pp": 0.094107, "speed_pp": 1700.192261, "t_tg": 0.302625, "speed_tg": 105.741432, "t": 0.396732, "speed": 483.953888}

"#;

    const ASKED: Asked<'_> = Asked {
        batches: &[8, 1],
        depth: 20,
        tokens: 4,
    };

    #[test]
    fn rows_are_paired_with_batches() {
        assert_eq!(ASKED.speeds(PRINTED).unwrap(), [105.741_432, 8.789_064]);
        let twice = Asked {
            batches: &[1, 1],
            ..ASKED
        };
        assert_eq!(twice.speeds(PRINTED).unwrap(), [8.789_064; 2]);
        let text = format!("main: n_kv_max = 4096\n{PRINTED}llama_perf_context_print: load time = 1 ms\n");
        assert_eq!(ASKED.speeds(&text).unwrap(), [105.741_432, 8.789_064]);
    }

    #[test]
    fn other_output_is_refused() {
        let refused = |asked: Asked<'_>, text: &str| asked.speeds(text).unwrap_err().to_string();
        assert_eq!(refused(ASKED, ""), "it printed no line of JSON");
        assert_eq!(refused(ASKED, "|    PP |     TG |\n"), "it printed no line of JSON");
        let cut = &PRINTED[..300];
        assert!(
            refused(ASKED, cut).starts_with("its line \"{\\\"n_kv_max"),
            "{}",
            refused(ASKED, cut)
        );
        for (from, to) in [
            ("\"speed_tg\": 105.741432", "\"speed_tg\": -nan"),
            ("\"speed_tg\": 105.741432", "\"speed_tg\": inf"),
            ("\"speed_tg\": 105.741432", "\"speed_tg\": \"105\""),
            ("\"speed_tg\"", "\"speed\""),
            ("\"pl\": 8", "\"pl\": -8"),
            ("{", "{{"),
        ] {
            let text = refused(ASKED, &PRINTED.replacen(from, to, 2));
            assert!(text.contains("is not a row"), "{from}: {text}");
        }
        let none = PRINTED.replace("105.741432", "0.000000");
        assert_eq!(refused(ASKED, &none), "its row of 8 sequences has 0 tokens a second");
    }

    #[test]
    fn a_batch_without_a_row_is_named() {
        let more = Asked {
            batches: &[1, 8, 32],
            ..ASKED
        };
        let text = more.speeds(PRINTED).unwrap_err().to_string();
        assert_eq!(text, "it printed no row of 32 sequences with 20 and 4 tokens");
        for other in [Asked { depth: 21, ..ASKED }, Asked { tokens: 5, ..ASKED }] {
            assert!(matches!(other.speeds(PRINTED), Err(RowError::Missing { batch: 8, .. })));
        }
    }

    #[test]
    fn the_cache_holds_the_largest_batch() {
        let words = ASKED.options("f16").join(" ");
        assert_eq!(
            words,
            "-npl 8,1 -npp 20 -ntg 4 -c 2048 -ngl 99 -fa on -ctk f16 -ctv f16 --output-format jsonl"
        );
        let deep = Asked {
            batches: &[1, 64],
            depth: 8192,
            tokens: 128,
        };
        assert_eq!(deep.context(), 64 * 8448);
        // A prompt of no token is one of one.
        let shallow = Asked { depth: 0, ..ASKED };
        assert!(shallow.options("f16").join(" ").contains("-npp 1 "));
    }
}
