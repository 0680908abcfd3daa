//! Fit of an encoder: it has no cache and lies on a card as a whole, so its weights and its largest step are all that it takes.

use std::io::Write;

use rocmforge::models::Limit;
use rocmforge::models::bert::{Bert, Embedder, EmbedderOptions};
use serde_json::json;

use super::{Args, AskedPlace, print};
use crate::failure::Failure;
use crate::table::short;

/// Answers for an encoder, with the fields of a model that makes text.
pub(super) fn run(args: &Args, model: &Bert, place: &AskedPlace) -> Result<(), Failure> {
    let name = model.architecture().name();
    if args.quant.is_some() || args.cache.engine().max_context != Limit::Auto {
        let text =
            format!("{name} is an encoder: it has no cache and is planned as its file is, without --ctx and --quant");
        return Err(text.into());
    }
    let memory = Embedder::forecast(&place.backend, model, EmbedderOptions::default())?;
    let (needed, longest) = (memory.bytes(), model.max_tokens());
    let fits = place.room.map(|room| needed <= room);
    let mut out = std::io::stdout().lock();
    if args.json {
        let object = json!({
            "model": args.model,
            "architecture": name,
            "card": place.json(),
            "context": longest,
            "model_context": longest,
            "weight_bytes": memory.weights,
            "cache_bytes": 0,
            "caches": {},
            "scratch_bytes": memory.steps,
            "needed_bytes": needed,
            "fits": fits,
            "largest_context": fits.filter(|fits| *fits).map(|_| longest),
            "parts": 1,
            "parts_on_card": fits.map(u8::from),
        });
        writeln!(out, "{}", serde_json::to_string(&object)?)?;
        return Ok(());
    }
    let bytes = |bytes: usize| short(bytes as u64);
    let mut rows = vec![
        ("model", format!("{} ({name}, an encoder)", args.model)),
        ("weights", bytes(memory.weights)),
        (
            "scratch",
            format!("{} for texts of up to {longest} tokens", bytes(memory.steps)),
        ),
        ("needed", bytes(needed)),
    ];
    rows.extend(place.rows());
    let verdict = fits.map(|fits| match fits {
        true => format!("yes, with texts of up to {longest} tokens"),
        false => "no: an encoder lies on a card as a whole, or on the CPU".to_owned(),
    });
    rows.extend(verdict.map(|verdict| ("fits", verdict)));
    print(&mut out, &rows)
}
