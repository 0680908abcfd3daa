//! `/props` and `/slots`: what runs, read only.

use axum::Json;
use axum::extract::{RawQuery, State};
use percent_encoding::percent_decode_str;
use rocmforge_models::generate::Request;
use serde_json::{Value, json};

use super::completion::settings;
use crate::app::{App, Asker};
use crate::error::{ApiError, Kind};
use crate::fields::Fields;
use crate::sampler;

/// The model that a query names (`model=NAME`), as it was before it was encoded.
pub(crate) fn named_model(query: &str) -> Result<Option<String>, ApiError> {
    let Some(name) = query.split('&').find_map(|pair| pair.strip_prefix("model=")) else {
        return Ok(None);
    };
    let name = name.replace('+', " ");
    let decoded = percent_decode_str(&name).decode_utf8();
    let decoded = decoded.map_err(|_| ApiError::invalid("the query is no UTF-8"))?;
    Ok(Some(decoded.into_owned()))
}

/// The model (`?model=NAME` where there are several) and the settings of requests that name none. It loads nothing.
pub(super) async fn show(State(app): State<App>, RawQuery(query): RawQuery) -> Result<Json<Value>, ApiError> {
    if !app.options().props {
        return Err(ApiError::new(Kind::NotThere, "this server does not show its settings"));
    }
    let query = query.unwrap_or_default();
    let entry = app.registry().find(named_model(&query)?.as_deref())?;
    let props = entry.look(|loaded, _| {
        let (template, facts) = (&loaded.template, &loaded.facts);
        let tokenizer = &loaded.server.tokenizer();
        let defaults = Fields::of(app.options().defaults.clone());
        let request = Request {
            sampler: sampler::config_here(&defaults, tokenizer, &app.options().limits)?,
            max_tokens: defaults.tokens("n_predict")?.unwrap_or(usize::MAX),
            ..Request::new("")
        };
        let token = |id: Option<u32>| id.and_then(|id| tokenizer.token(id)).unwrap_or_default().to_owned();
        let params = settings(&request, tokenizer, false);
        Ok::<_, ApiError>(json!({
            "default_generation_settings": {"n_ctx": facts.context, "params": params},
            "total_slots": facts.sequences,
            "chat_template": template.as_ref().map_or("", |template| template.source()),
            "bos_token": token(tokenizer.bos()),
            "eos_token": token(tokenizer.eos()),
            "is_sleeping": false,
        }))
    });
    // A model that is not loaded says nothing.
    let mut props = props.transpose()?.unwrap_or_else(|| json!({"is_sleeping": true}));
    props["model_alias"] = entry.name.as_str().into();
    // A path of this machine is nobody's business.
    props["model_path"] = format!("{}.gguf", entry.name).into();
    props["modalities"] = json!({"vision": false, "audio": false});
    props["build_info"] = concat!("rocmforge-", env!("CARGO_PKG_VERSION")).into();
    Ok(Json(props))
}

/// Places of requests in the cache, and how many of them are taken. What users ask is not shown.
pub(super) async fn slots(State(app): State<App>, asker: Asker) -> Result<Json<Value>, ApiError> {
    if !app.options().slots {
        return Err(ApiError::new(Kind::NotThere, "this server does not show its slots"));
    }
    app.check_admin(&asker)?;
    let models = app.registry().entries().filter_map(|entry| {
        entry.look(|loaded, figures| {
            let slot = |id: usize| {
                json!({
                    "id": id,
                    "model": entry.name,
                    "n_ctx": loaded.facts.context,
                    "speculative": false,
                    "is_processing": id < figures.open,
                })
            };
            (0..loaded.facts.sequences).map(slot).collect::<Vec<Value>>()
        })
    });
    Ok(Json(models.flatten().collect()))
}
