//! Log-probabilities of drawn tokens, as chat completions and as completions have them.

use rocmforge_models::generate::Token;
use rocmforge_models::tokenizer::{DecodeStream, Tokenizer};
use serde_json::{Map, Value, json};

/// A token's text; parts of characters become U+FFFD.
pub(super) fn text(tokenizer: &Tokenizer, id: u32) -> String {
    match tokenizer.is_control(id) {
        true => tokenizer.token(id).unwrap_or_default().to_owned(),
        false => String::from_utf8_lossy(tokenizer.token_bytes(id).unwrap_or_default()).into_owned(),
    }
}

/// A token with a number by this name.
fn entry(tokenizer: &Tokenizer, id: u32, (name, number): (&str, Value)) -> Map<String, Value> {
    let text = text(tokenizer, id);
    let bytes = match tokenizer.token_bytes(id) {
        Some(bytes) if !tokenizer.is_control(id) => bytes.to_vec(),
        _ => text.clone().into_bytes(),
    };
    let entry = [
        ("token".to_owned(), Value::from(text)),
        ("id".to_owned(), id.into()),
        (name.to_owned(), number),
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
    let content = list(tokenizer, tokens, "top_logprobs", |logprob| {
        ("logprob", finite(logprob))
    });
    json!({"content": content, "refusal": null})
}

/// Tokens with their probabilities after the sampler's stages, as llama.cpp's server gives them.
pub(crate) fn after_sampling(tokenizer: &Tokenizer, tokens: &[Token]) -> Value {
    list(tokenizer, tokens, "top_probs", |logprob| ("prob", logprob.exp().into()))
}

/// Tokens, each with the most likely ones under the name `top`.
fn list(tokenizer: &Tokenizer, tokens: &[Token], top: &str, number: impl Fn(f32) -> (&'static str, Value)) -> Value {
    let content = tokens.iter().map(|token| {
        let mut content = entry(tokenizer, token.id, number(token.logprob));
        let others = token.top.iter();
        let others = others.map(|(id, logprob)| Value::from(entry(tokenizer, *id, number(*logprob))));
        content.insert(top.to_owned(), others.collect());
        Value::from(content)
    });
    content.collect()
}

/// `logprobs` of a completion: of the prompt's tokens if they are shown, then of those drawn.
pub(super) struct OfText<'a> {
    tokenizer: &'a Tokenizer,
    /// The place of the next token's text in characters.
    offset: usize,
    texts: Vec<Value>,
    logprobs: Vec<Value>,
    tops: Vec<Value>,
    offsets: Vec<Value>,
}

impl<'a> OfText<'a> {
    /// Of tokens whose text begins at this place of the answer's.
    pub(super) fn new(tokenizer: &'a Tokenizer, offset: usize) -> Self {
        Self {
            tokenizer,
            offset,
            texts: Vec::new(),
            logprobs: Vec::new(),
            tops: Vec::new(),
            offsets: Vec::new(),
        }
    }

    /// Adds a token, of which the answer shows this text: none of a control token, and a character with the last of its tokens.
    fn add(&mut self, id: u32, shown: &str, logprob: Value, top: Value) {
        self.texts.push(text(self.tokenizer, id).into());
        self.offsets.push(self.offset.into());
        self.offset += shown.chars().count();
        self.logprobs.push(logprob);
        self.tops.push(top);
    }

    fn top(&self, token: &Token) -> Value {
        let mut top = Map::new();
        for (id, logprob) in &token.top {
            // Of tokens with equal texts the most likely counts, which comes first.
            top.entry(text(self.tokenizer, *id)).or_insert(finite(*logprob));
        }
        top.into()
    }

    /// Adds a prompt: its first token, which has no probability, and the others.
    pub(super) fn prompt(mut self, first: u32, others: &[Token]) -> Self {
        let mut shown = DecodeStream::after(self.tokenizer, &[]);
        self.add(first, &shown.push(first), Value::Null, Value::Null);
        for token in others {
            let top = self.top(token);
            self.add(token.id, &shown.push(token.id), finite(token.logprob), top);
        }
        self
    }

    /// What is shown of the prompt is this text: the next token's begins after it.
    pub(super) fn shown(mut self, prompt: &str) -> Self {
        self.offset = prompt.chars().count();
        self
    }

    /// Adds drawn tokens.
    pub(super) fn drawn<'t>(mut self, tokens: impl IntoIterator<Item = &'t Token>) -> Self {
        for token in tokens {
            let top = self.top(token);
            self.add(token.id, &token.text, finite(token.logprob), top);
        }
        self
    }

    pub(super) fn json(self) -> Value {
        json!({
            "tokens": self.texts,
            "token_logprobs": self.logprobs,
            "top_logprobs": self.tops,
            "text_offset": self.offsets,
        })
    }
}
