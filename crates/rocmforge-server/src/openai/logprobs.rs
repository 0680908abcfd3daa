//! Log-probabilities of drawn tokens, as chat completions and as completions have them.

use rocmforge_models::generate::Token;
use rocmforge_models::tokenizer::Tokenizer;
use serde_json::{Map, Value, json};

/// A token's text; parts of characters become U+FFFD.
pub(super) fn text(tokenizer: &Tokenizer, id: u32) -> String {
    match tokenizer.is_control(id) {
        true => tokenizer.token(id).unwrap_or_default().to_owned(),
        false => String::from_utf8_lossy(tokenizer.token_bytes(id).unwrap_or_default()).into_owned(),
    }
}

fn entry(tokenizer: &Tokenizer, id: u32, logprob: f32) -> Map<String, Value> {
    let text = text(tokenizer, id);
    let bytes = match tokenizer.token_bytes(id) {
        Some(bytes) if !tokenizer.is_control(id) => bytes.to_vec(),
        _ => text.clone().into_bytes(),
    };
    let entry = [
        ("token".to_owned(), Value::from(text)),
        ("id".to_owned(), id.into()),
        ("logprob".to_owned(), finite(logprob)),
        ("bytes".to_owned(), bytes.into()),
    ];
    entry.into_iter().collect()
}

/// JSON has no -inf: the lowest number stands for it, as in the OpenAI API.
pub(super) fn finite(logprob: f32) -> Value {
    match logprob.is_finite() {
        true => logprob.into(),
        false => Value::from(-9999.0),
    }
}

/// Entries of `logprobs.content` of a chat completion.
pub(crate) fn of_chat(tokenizer: &Tokenizer, tokens: &[Token]) -> Value {
    let content = tokens.iter().map(|token| {
        let mut content = entry(tokenizer, token.id, token.logprob);
        let top = token
            .top
            .iter()
            .map(|(id, logprob)| Value::from(entry(tokenizer, *id, *logprob)));
        content.insert("top_logprobs".to_owned(), top.collect());
        Value::from(content)
    });
    json!({"content": content.collect::<Value>(), "refusal": null})
}

/// `logprobs` of a completion: of the prompt's tokens if they are shown, then of those drawn. `first` is the prompt's first token, which has no
/// probability; `offset` is the place of the first token's text in characters.
pub(super) fn of_text<'a>(
    tokenizer: &Tokenizer,
    first: Option<u32>,
    tokens: impl IntoIterator<Item = &'a Token>,
    mut offset: usize,
) -> Value {
    let (mut texts, mut logprobs, mut tops, mut offsets) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    if let Some(id) = first {
        let text = text(tokenizer, id);
        offsets.push(offset);
        offset += text.chars().count();
        texts.push(text);
        logprobs.push(Value::Null);
        tops.push(Value::Null);
    }
    for token in tokens {
        let text = text(tokenizer, token.id);
        offsets.push(offset);
        offset += text.chars().count();
        texts.push(text);
        logprobs.push(finite(token.logprob));
        let top = token
            .top
            .iter()
            .map(|(id, logprob)| (self::text(tokenizer, *id), finite(*logprob)));
        tops.push(Value::Object(top.collect()));
    }
    json!({"tokens": texts, "token_logprobs": logprobs, "top_logprobs": tops, "text_offset": offsets})
}
