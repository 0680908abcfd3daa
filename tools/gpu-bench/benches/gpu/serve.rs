//! Timed requests on standard input, one JSON object a line, answers on standard output: our side of
//! `cargo xtask bench compare`. PyTorch's side (`tools/measure/src/bench/torch_side.py`) speaks the same.
//!
//! | request | does | answer |
//! |---|---|---|
//! | `{"do": "hello"}` | nothing | `device` |
//! | `{"do": "prepare", "op", "shape", "sets"}` | makes inputs and outputs, `sets` times | `work` and its unit |
//! | `{"do": "time", "iterations"}` | runs so many, going round in the sets | `seconds` of one |
//! | `{"do": "sample", "runs", "length"}` | runs once on set 0 | `values`: runs of adjacent elements, evenly spread |
//! | `{"do": "drop"}` | forgets the operation | nothing |
//!
//! An answer is `{"ok": {...}}` or `{"error": "why"}`.

use crate::card::Card;
use crate::inputs::{blank, values};
use crate::op::Op;
use crate::table::Work;
use crate::timing::Watch;
use rocmforge_kernels::FloatType;
use rocmforge_runtime::HipBuffer;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{BufRead, Write};

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
enum Request {
    Hello,
    Prepare { op: String, shape: Vec<usize>, sets: usize },
    Time { iterations: u64 },
    Sample { runs: usize, length: usize },
    Drop,
}

/// An operation with its buffers.
struct Prepared {
    op: Op,
    /// Whether the output is f16.
    halves: bool,
    sets: Vec<(Vec<HipBuffer<f32>>, HipBuffer<f32>)>,
    next: usize,
}

type Answer = Result<Value, Box<dyn std::error::Error>>;

pub(crate) fn run() {
    let card = Card::take();
    let mut prepared = None;
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let answer = match &card {
            Some(card) => serde_json::from_str(&line)
                .map_err(Into::into)
                .and_then(|request| answer(card, &mut prepared, request)),
            None => Err("no card was asked for: `cargo xtask bench compare --device …` starts this".into()),
        };
        let answer = match answer {
            Ok(value) => json!({ "ok": value }),
            Err(error) => json!({ "error": error.to_string() }),
        };
        let mut out = std::io::stdout().lock();
        if writeln!(out, "{answer}").and_then(|()| out.flush()).is_err() {
            break;
        }
    }
}

fn answer(card: &Card, prepared: &mut Option<Prepared>, request: Request) -> Answer {
    let (stream, kernels) = (card.stream(), card.kernels());
    match request {
        Request::Hello => {
            let device = card.backend().device();
            Ok(json!({ "device": device.name, "arch": device.arch, "real": card.is_real() }))
        }
        Request::Prepare { op, shape, sets } => {
            *prepared = None;
            card.clear();
            let op = Op { name: op, shape };
            let plan = op
                .plan(kernels, stream)
                .ok_or("no such operation, or not of so many dimensions")?;
            let mut made = Vec::new();
            for set in 0..sets.max(1) as u32 {
                let inputs = plan.inputs.iter().zip(0..);
                let inputs = inputs
                    .map(|(&(kind, n), nth)| HipBuffer::from_slice(stream, &values(kind, set * 8 + nth, n), "input"));
                made.push((inputs.collect::<Result<Vec<_>, _>>()?, blank(stream, plan.output)));
            }
            stream.synchronize()?;
            *prepared = Some(Prepared {
                op,
                halves: plan.halves,
                sets: made,
                next: 0,
            });
            Ok(match plan.work {
                Work::Bytes(bytes) => json!({ "unit": "bytes", "work": bytes }),
                Work::Flops(flops) => json!({ "unit": "flop", "work": flops }),
                Work::Calls => json!({}),
            })
        }
        Request::Time { iterations } => {
            let prepared = prepared.as_mut().ok_or("nothing is prepared")?;
            let (mut failed, iterations) = (None, iterations.max(1));
            let time = Watch::new(card).time(|| {
                for _ in 0..iterations {
                    let (inputs, y) = &prepared.sets[prepared.next];
                    prepared.next = (prepared.next + 1) % prepared.sets.len();
                    if let Err(error) = prepared.op.launch(kernels, stream, inputs, y) {
                        failed = Some(error);
                        break;
                    }
                }
            });
            match failed {
                Some(error) => Err(error.into()),
                None => Ok(json!({ "seconds": time.as_secs_f64() / iterations as f64 })),
            }
        }
        Request::Sample { runs, length } => {
            let prepared = prepared.as_mut().ok_or("nothing is prepared")?;
            let (inputs, y) = &prepared.sets[0];
            // NaN wherever the kernel leaves something out.
            y.fill_bytes(stream, 0xff)?;
            prepared.op.launch(kernels, stream, inputs, y)?;
            let wide = match prepared.halves {
                true => {
                    let wide = blank(stream, 2 * y.len());
                    let (from, to) = ((FloatType::F16, &y.cast()?), (FloatType::F32, &wide.cast()?));
                    kernels.cast(stream, from, to, wide.len())?;
                    Some(wide)
                }
                false => None,
            };
            let y = wide.as_ref().unwrap_or(y);
            let length = length.clamp(1, y.len());
            let runs = runs.clamp(1, y.len() / length);
            let mut sampled = Vec::with_capacity(runs * length);
            for run in 0..runs {
                let at = run * (y.len() / runs);
                sampled.extend(y.view(at..at + length)?.to_vec(stream)?);
            }
            // JSON has no infinity and no NaN; as bits they all go through.
            Ok(json!({ "bits": sampled.iter().map(|value| value.to_bits()).collect::<Vec<u32>>() }))
        }
        Request::Drop => {
            *prepared = None;
            card.clear();
            Ok(json!({}))
        }
    }
}
