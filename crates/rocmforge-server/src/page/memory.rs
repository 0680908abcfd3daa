//! `/memory`: how the memory of the cards is shared, and what each loaded model has of it. Reading it launches nothing.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use rocmforge_memory::Bytes;
use serde_json::{Value, json};

use crate::app::App;
use crate::error::{ApiError, Kind};

pub(super) async fn show(State(app): State<App>) -> Result<Json<Value>, ApiError> {
    // The driver is asked, and it may take its time.
    let read = tokio::task::spawn_blocking(move || read(&app)).await;
    read.map(Json)
        .map_err(|_| ApiError::new(Kind::Internal, "the memory of the cards could not be read"))
}

fn read(app: &App) -> Value {
    // Several models may lie on one card.
    let mut cards = BTreeMap::new();
    let models = app.registry().entries().filter_map(|entry| {
        entry.look(|loaded, figures| {
            let own = (loaded.memory)();
            let ids: Vec<String> = own.iter().map(|card| card.id.clone()).collect();
            cards.extend(own.into_iter().map(|card| (card.id.clone(), card)));
            let (facts, cache) = (&loaded.facts, &figures.cache);
            json!({
                "model": entry.name,
                "device": facts.device,
                "cards": ids,
                "weight_bytes": facts.weight_bytes,
                "cache_bytes": facts.cache_bytes,
                "card_bytes": loaded.bytes(figures).1,
                "cache_tokens": facts.cache_tokens,
                "cache_blocks": cache.blocks,
                "cache_blocks_used": cache.blocks.saturating_sub(cache.free),
                "cache_blocks_kept": cache.cached,
            })
        })
    });
    let models: Vec<Value> = models.collect();
    let cards = cards.into_values().map(|card| {
        json!({
            "id": card.id,
            "name": card.name,
            "total": card.total.0,
            "budget": card.budget.0,
            "own": card.own.0,
            "others": card.others.map(|Bytes(bytes)| bytes),
            "headroom": card.headroom.0,
        })
    });
    json!({"cards": cards.collect::<Vec<_>>(), "models": models})
}
