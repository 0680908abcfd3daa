//! Tests of the whole crate but those of a device and of counts: one binary, with a module for each subject.
#![allow(clippy::print_stdout)] // measured differences, shown when a test fails or with --nocapture

mod reference;
mod suite {
    mod archs;
    mod bert;
    mod cache_types;
    mod caches;
    mod candidates;
    mod changes;
    mod chat;
    mod chat_python;
    mod chat_random;
    mod checkpoints;
    mod checkpoints_of_mixtures;
    mod chunks;
    mod config_json;
    mod conversion;
    mod directory;
    mod embeddings;
    mod encoders;
    mod ends;
    mod experts;
    mod file_kinds;
    mod generate;
    mod generate_logprobs;
    mod gguf_keys;
    mod hostile_tokenizers;
    mod hostile_weights;
    mod kimi;
    mod model;
    mod passes;
    mod plan;
    mod pre_tokenizers;
    mod published_settings;
    mod real;
    mod rerankers;
    mod runtime;
    mod sampling;
    mod sampling_stages;
    mod sampling_top;
    mod serve;
    mod serve_embeddings;
    mod settings;
    mod tiny;
    mod tokenizer_files;
    mod tokenizer_json;
    mod vocab;
}
