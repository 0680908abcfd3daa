//! Embedding servers: texts of many requests together, limits, ends, and faults in the middle.

use std::sync::mpsc;

use rocmforge_ggml::CpuBackend;
use rocmforge_models::bert::{Bert, Embedder, EmbedderOptions, Embeddings, TextIds};
use rocmforge_models::serve::{EmbeddingHandle, EmbeddingOptions, EmbeddingServer, ServeError, ServeOptions, State};
use rocmforge_testkit::data::rng;

use super::bert::random;
use super::serve::{Fault, planted};

const STEP: EmbedderOptions = EmbedderOptions {
    step_tokens: 64,
    hidden: false,
    passes: None,
};

fn model() -> Bert {
    let directory = tempfile::tempdir().expect("a directory");
    random(directory.path());
    Bert::open(directory.path()).expect("opens")
}

/// A server whose programs meet faults.
fn server(options: EmbeddingOptions, faults: &[(usize, Fault)]) -> EmbeddingServer {
    let faults = faults.to_vec();
    let server = EmbeddingServer::start(options, move || Embedder::new(model(), planted(&faults), STEP));
    server.expect("it starts")
}

fn texts(handle: &EmbeddingHandle, texts: &[String]) -> Vec<TextIds> {
    let ids = texts.iter().map(|text| handle.encoder().text(text, true));
    ids.collect::<Result<_, _>>().expect("tokens")
}

fn alone(all: &[String]) -> Embeddings {
    let mut embedder = Embedder::new(model(), CpuBackend::with_threads(1), STEP).expect("it loads");
    embedder.embed(all).expect("runs").embeddings
}

#[test]
fn requests_of_many_threads_get_what_each_text_gives_alone() {
    let server = server(EmbeddingOptions::default(), &[]);
    let mut rng = rng(11);
    let words = ["a", "b", "c", "unknown", "xs"];
    let mut requests = Vec::new();
    for _ in 0..12 {
        let count = 1 + rng.below(9);
        let text = |rng: &mut rocmforge_testkit::data::Rng| -> String {
            let length = rng.below(36);
            (0..length).map(|_| words[rng.below(5)]).collect::<Vec<_>>().join(" ")
        };
        requests.push((0..count).map(|_| text(&mut rng)).collect::<Vec<String>>());
    }
    std::thread::scope(|scope| {
        for request in &requests {
            let handle = server.handle();
            scope.spawn(move || {
                let ids = texts(&handle, request);
                let tokens: usize = ids.iter().map(TextIds::len).sum();
                let found = handle.embed(ids).expect("an answer");
                assert_eq!(found.tokens, tokens);
                let expected = alone(request);
                let worst = found
                    .embeddings
                    .data
                    .iter()
                    .zip(&expected.data)
                    .map(|(a, b)| (a - b).abs());
                assert!(worst.fold(0.0, f32::max) <= 1e-6, "{request:?}");
                assert_eq!(found.embeddings.len(), expected.len());
            });
        }
    });
    let figures = server.handle().figures();
    assert_eq!((figures.open, figures.failed_in_a_row), (0, 0));
    assert!(figures.steps > 0);
    let handle = server.handle();
    server.drain();
    assert_eq!(handle.figures().state, State::Stopped);
    let error = handle
        .embed(texts(&handle, &["a".to_owned()]))
        .expect_err("it has ended");
    assert!(matches!(error, ServeError::Stopped), "{error}");
}

#[test]
fn a_step_that_fails_ends_its_requests_and_no_others() {
    let server = server(EmbeddingOptions::default(), &[(1, Fault::Fail)]);
    let handle = server.handle();
    let one = || texts(&handle, &["a b".to_owned()]);
    let error = handle.embed(one()).expect_err("planted");
    assert!(matches!(error, ServeError::StepFailed(_)), "{error}");
    assert_eq!(handle.figures().failed_in_a_row, 1);
    let found = handle.embed(one()).expect("the next step works");
    assert_eq!(found.embeddings, alone(&["a b".to_owned()]));
    assert_eq!(handle.figures().failed_in_a_row, 0);
}

#[test]
fn a_panic_ends_all_requests_and_the_server() {
    let server = server(EmbeddingOptions::default(), &[(1, Fault::Panic)]);
    let handle = server.handle();
    let error = handle.embed(texts(&handle, &["a".to_owned()])).expect_err("planted");
    assert!(matches!(error, ServeError::Stopped), "{error}");
    assert_eq!(handle.figures().state, State::Stopped);
}

#[test]
fn texts_and_requests_are_bounded_and_refused_ones_leave_nothing() {
    let options = EmbeddingOptions {
        texts: 4,
        serve: ServeOptions {
            queue: 1,
            ..ServeOptions::default()
        },
    };
    let server = server(options, &[]);
    let handle = server.handle();
    let some = |count: usize| texts(&handle, &vec!["a b c".to_owned(); count]);
    for round in 0..3 {
        let error = handle.embed(some(5)).expect_err("too many");
        assert!(matches!(error, ServeError::TextsFull { texts: 5, limit: 4 }), "{error}");
        let error = handle.embed(Vec::new()).expect_err("none");
        assert!(matches!(error, ServeError::EmptyText), "{error}");
        let long = handle.encoder().whole(vec![4; 41]).expect("ids");
        let error = handle.embed(vec![long]).expect_err("too long");
        assert!(
            matches!(error, ServeError::TextTooLong { tokens: 41, most: 40 }),
            "{error}"
        );
        // Answers count until they are dropped.
        let held = handle.embed(some(3)).expect("room");
        let error = handle.embed(some(2)).expect_err("too many");
        assert!(
            matches!(error, ServeError::TextsFull { texts: 5, .. }),
            "round {round}: {error}"
        );
        drop(held);
        assert_eq!(handle.embed(some(4)).expect("room").embeddings.len(), 4);
    }
}

#[test]
fn a_ticket_that_is_dropped_ends_its_request() {
    let server = server(EmbeddingOptions::default(), &[]);
    let handle = server.handle();
    let (answers, answer) = mpsc::channel();
    // The sink of the first request holds the engine's thread until the second is cancelled.
    let (go_on, goes_on) = mpsc::channel::<()>();
    let of_first = answers.clone();
    let first = handle.submit_to(texts(&handle, &["a".to_owned()]), move |found| {
        let _ = goes_on.recv();
        let _ = of_first.send(("first", found.is_ok()));
    });
    let _first = first.expect("room");
    let second = handle.submit_to(
        texts(&handle, &["b".to_owned(), "a b c a b c".to_owned()]),
        move |found| {
            let _ = answers.send(("second", found.is_ok()));
        },
    );
    drop(second.expect("room"));
    drop(go_on);
    let mut ends: Vec<(&str, bool)> = answer.iter().collect();
    ends.sort_unstable();
    assert_eq!(ends[0], ("first", true));
    assert_eq!(ends[1].0, "second");
    assert_eq!(handle.figures().open, 0);
}
