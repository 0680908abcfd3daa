//! Random encoders with the embeddings of the f64 forward.

use rocmforge_ggml::HostAccess;
use rocmforge_models::bert::{Bert, Embedder, EmbedderOptions, Pooling, PoolingMode, TextIds};
use serde::Deserialize;

use super::folder;

/// Largest difference of a component of an embedding of length 1 between f32 and f64.
const COMPONENT: f64 = 2e-5;

/// A random encoder, and what it gives for some texts.
#[derive(Deserialize)]
pub(crate) struct TinyEncoder {
    pub(crate) file: String,
    /// Of a decoder, whose file does not say it: 1 for the mean, 3 for the last token.
    pooling: Option<u8>,
    pub(crate) texts: Vec<Text>,
}

#[derive(Deserialize)]
pub(crate) struct Text {
    pub(crate) ids: Vec<u32>,
    embedding: Vec<f64>,
}

impl TinyEncoder {
    pub(crate) fn all() -> Vec<Self> {
        let text = std::fs::read(folder().join("encoders.json")).expect("a committed fixture");
        serde_json::from_slice(&text).expect("the fixture's format")
    }

    pub(crate) fn open(&self) -> Bert {
        let pooling = self.pooling.map(|pooling| Pooling {
            mode: if pooling == 1 {
                PoolingMode::Mean
            } else {
                PoolingMode::Last
            },
            normalize: true,
        });
        let path = folder().join("tiny").join(&self.file);
        Bert::open_with(path, pooling).unwrap_or_else(|error| panic!("{}: {error}", self.file))
    }

    /// What a map that changes the sign makes of the embeddings.
    pub(crate) fn negated(mut self) -> Self {
        let components = self.texts.iter_mut().flat_map(|text| &mut text.embedding);
        components.for_each(|component| *component = -*component);
        self
    }

    /// The largest difference of a component, of the texts in steps of so many tokens.
    pub(crate) fn check<B: HostAccess>(&self, model: Bert, backend: B, step_tokens: usize) -> f64 {
        let rows = self.texts.iter().map(|text| model.encoder().whole(text.ids.clone()));
        let rows: Vec<TextIds> = rows.collect::<Result<_, _>>().expect("its ids");
        let options = EmbedderOptions {
            step_tokens,
            ..EmbedderOptions::default()
        };
        let mut embedder = Embedder::new(model, backend, options).expect("it loads");
        let found = embedder.embed_ids(&rows).expect("runs").embeddings;
        let mut worst = 0.0f64;
        for (index, text) in self.texts.iter().enumerate() {
            assert_eq!(found.row(index).len(), text.embedding.len(), "{}", self.file);
            for (&found, expected) in found.row(index).iter().zip(&text.embedding) {
                let difference = (f64::from(found) - expected).abs();
                assert!(
                    difference < COMPONENT,
                    "{}, text {index}: {found}, not {expected}",
                    self.file
                );
                worst = worst.max(difference);
            }
        }
        worst
    }
}
