//! Servers: requests of many threads, limits, ends, and faults in the middle.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rocmforge_ggml::{CpuBackend, GgmlError, GgmlResult, TensorId};
use rocmforge_models::generate::{Event, FinishReason, GenerateError, Generator, Request};
use rocmforge_models::sampling::SamplerConfig;
use rocmforge_models::serve::{Events, Handle, ServeError, ServeOptions, Server, State};
use rocmforge_models::{Engine, Model};
use rocmforge_testkit::data::rng;
use rocmforge_testkit::{Hook, HookedBackend};

use crate::reference::load::small_engine;
use crate::reference::{Tiny, best, engine};

/// What a step does instead of computing.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    Fail,
    Sleep(Duration),
    Panic,
}

/// Faults that some programs of a backend meet, by their numbers from 1.
pub(super) struct Plan {
    run: usize,
    faults: Vec<(usize, Fault)>,
    /// Graphs that are refused before one is compiled.
    pub(super) refused: usize,
    /// Set when the backend has been dropped, which takes a time.
    dropped: Option<Arc<AtomicBool>>,
}

impl Drop for Plan {
    fn drop(&mut self) {
        if let Some(dropped) = &self.dropped {
            std::thread::sleep(Duration::from_millis(300));
            dropped.store(true, Ordering::SeqCst);
        }
    }
}

impl Hook for Plan {
    fn compile(&mut self) -> GgmlResult<()> {
        match self.refused {
            0 => Ok(()),
            _ => {
                self.refused -= 1;
                Err(GgmlError::UnknownTensor(TensorId(usize::MAX)))
            }
        }
    }

    fn enqueue(&mut self) -> GgmlResult<()> {
        self.run += 1;
        let planted = self.faults.iter().find(|(at, _)| *at == self.run);
        match planted.map(|(_, fault)| *fault) {
            None => {}
            Some(Fault::Fail) => return Err(GgmlError::UnknownTensor(TensorId(usize::MAX))),
            Some(Fault::Sleep(time)) => std::thread::sleep(time),
            Some(Fault::Panic) => panic!("planted"),
        }
        Ok(())
    }
}

/// A CPU backend with planted faults.
pub(super) type Planted = HookedBackend<Plan>;

pub(super) fn planted(faults: &[(usize, Fault)]) -> Planted {
    HookedBackend::new(Plan {
        run: 0,
        faults: faults.to_vec(),
        dropped: None,
        refused: 0,
    })
}

fn model() -> Model {
    let tiny = Tiny::all().into_iter().find(|tiny| tiny.file == "llama.gguf");
    tiny.expect("a committed model").open()
}

/// A server of the tiny Llama, whose programs meet faults.
fn server(options: ServeOptions, faults: &[(usize, Fault)]) -> Server {
    let faults = faults.to_vec();
    Server::start(options, move || {
        let model = model();
        let mut engine = Engine::new(planted(&faults), &model, small_engine())?;
        // The first step builds no graph: it is as quick as the others.
        engine.warm_up()?;
        Ok(Generator::new(engine, model.tokenizer()?))
    })
    .expect("it starts")
}

fn greedy(prompt: &[u32], max_tokens: usize) -> Request {
    Request {
        sampler: SamplerConfig::greedy(),
        max_tokens,
        ignore_end: true,
        ..Request::new(prompt.to_vec())
    }
}

/// Tokens and end of a request.
fn collect(events: Events) -> (Vec<u32>, Result<FinishReason, ServeError>) {
    let mut ids = Vec::new();
    let mut end = Err(ServeError::Stopped);
    for event in events {
        match event {
            Ok(Event::Prompt { .. }) => {}
            Ok(Event::Token { token, .. }) => ids.push(token.id),
            Ok(Event::Finished { reason, .. }) => end = Ok(reason),
            Err(error) => end = Err(error),
        }
    }
    (ids, end)
}

/// Greedy tokens of a prompt in an engine of its own.
fn alone(prompt: &[u32], tokens: usize) -> Vec<u32> {
    let mut engine = engine(CpuBackend::with_threads(1), &model(), 128);
    let sequence = engine.add_sequence(prompt).expect("room");
    let mut logits = engine.prefill(sequence, prompt).expect("runs");
    let mut ids = Vec::new();
    for _ in 0..tokens {
        ids.push(best(&logits));
        logits = engine.decode(sequence, best(&logits)).expect("runs");
    }
    ids
}

#[test]
fn requests_of_many_threads_give_what_each_gives_alone() {
    let server = server(ServeOptions::default(), &[]);
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            let handle = server.handle();
            std::thread::spawn(move || {
                let mut rng = rng(thread);
                for round in 0..8 {
                    let length = 1 + rng.below(60);
                    let prompt: Vec<u32> = (0..length).map(|_| rng.below(316) as u32).collect();
                    let tokens = 1 + rng.below(20);
                    let events = handle.submit(greedy(&prompt, tokens)).expect("taken");
                    if rng.below(4) == 0 {
                        events.cancel();
                    }
                    let (ids, end) = collect(events);
                    assert_eq!(ids, alone(&prompt, ids.len()), "thread {thread}, round {round}");
                    match end {
                        Ok(FinishReason::MaxTokens) => assert_eq!(ids.len(), tokens),
                        Ok(FinishReason::Cancelled) => {}
                        other => panic!("thread {thread}, round {round}: {other:?}"),
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("its requests are right");
    }
    let figures = server.handle().figures();
    assert_eq!(
        (figures.state, figures.open, figures.failed_in_a_row),
        (State::Ready, 0, 0)
    );
    assert!(
        figures.steps > 0 && figures.last_step.is_some() && figures.graphs.built > 0,
        "{figures:?}"
    );
    server.drain();
}

/// Handles and sinks are for any thread.
#[test]
fn a_handle_can_be_sent_and_shared() {
    fn any_thread<T: Send + Sync + Clone>() {}
    any_thread::<Handle>();
    any_thread::<ServeError>();
}

#[test]
fn a_full_queue_and_a_draining_server_say_so_and_what_was_taken_ends() {
    let options = ServeOptions {
        queue: 2,
        ..ServeOptions::default()
    };
    let server = server(options, &[(1, Fault::Sleep(Duration::from_millis(300)))]);
    let handle = server.handle();
    let taken: Vec<Events> = (0..2)
        .map(|_| handle.submit(greedy(&[7, 8], 4)).expect("room"))
        .collect();
    match handle.submit(greedy(&[7, 8], 4)) {
        Err(ServeError::QueueFull { open: 2, limit: 2 }) => {}
        other => panic!("{other:?}"),
    }
    handle.drain();
    assert!(matches!(handle.submit(greedy(&[7, 8], 4)), Err(ServeError::Draining)));
    assert_eq!(handle.figures().state, State::Draining);
    for events in taken {
        let (ids, end) = collect(events);
        assert_eq!(
            (ids, end.expect("it ends")),
            (alone(&[7, 8], 4), FinishReason::MaxTokens)
        );
    }
    server.drain();
    assert!(matches!(handle.submit(greedy(&[7, 8], 4)), Err(ServeError::Stopped)));
    assert_eq!(handle.figures().state, State::Stopped);
}

#[test]
fn a_request_that_can_never_run_is_refused_at_once() {
    let server = server(ServeOptions::default(), &[]);
    let refusal = |prompt: &[u32]| match server.handle().submit(greedy(prompt, 4)) {
        Err(ServeError::Refused(error)) => error,
        other => panic!("{other:?}"),
    };
    assert!(matches!(*refusal(&[]), GenerateError::EmptyPrompt));
    assert!(matches!(
        *refusal(&[5; 97]),
        GenerateError::PromptTooLong {
            tokens: 97,
            context: 96
        }
    ));
    assert!(matches!(*refusal(&[1 << 20]), GenerateError::Model(_)));
    // A parameter of the sampler is looked at by the engine's thread.
    let mut request = greedy(&[7], 4);
    request.sampler.top_p = -1.0;
    let (ids, end) = collect(server.handle().submit(request).expect("taken"));
    assert!(ids.is_empty() && matches!(end, Err(ServeError::Refused(_))), "{end:?}");
    assert_eq!(server.handle().figures().open, 0);
}

#[test]
fn a_step_that_fails_ends_its_requests_and_no_others() {
    // While the first step sleeps the second request comes: the third step has both.
    let faults = [(1, Fault::Sleep(Duration::from_millis(300))), (3, Fault::Fail)];
    let server = server(ServeOptions::default(), &faults);
    let handle = server.handle();
    let first = [handle.submit(greedy(&[7, 8], 40)), handle.submit(greedy(&[9], 40))];
    for events in first {
        let (ids, end) = collect(events.expect("taken"));
        assert!(
            ids.len() < 40 && matches!(end, Err(ServeError::StepFailed(_))),
            "{ids:?} {end:?}"
        );
    }
    let (ids, end) = collect(handle.submit(greedy(&[7, 8], 10)).expect("taken"));
    assert_eq!(
        (ids, end.expect("it ends")),
        (alone(&[7, 8], 10), FinishReason::MaxTokens)
    );
    let figures = handle.figures();
    assert_eq!(
        (figures.state, figures.open, figures.cache.sequences),
        (State::Ready, 0, 0)
    );
    assert_eq!(figures.cache.free, figures.cache.blocks);
}

#[test]
fn a_device_that_does_not_answer_ends_all_requests_with_an_error() {
    let deadline = Duration::from_secs(1);
    let options = ServeOptions {
        step_deadline: deadline,
        ..ServeOptions::default()
    };
    let server = server(options, &[(2, Fault::Sleep(Duration::from_secs(8)))]);
    let handle = server.handle();
    let began = Instant::now();
    let all: Vec<Events> = (0..3)
        .map(|_| handle.submit(greedy(&[7, 8], 40)).expect("room"))
        .collect();
    for events in all {
        let (_, end) = collect(events);
        assert!(
            matches!(end, Err(ServeError::StepDeadline { deadline: d }) if d == deadline),
            "{end:?}"
        );
    }
    assert!(matches!(handle.submit(greedy(&[7], 1)), Err(ServeError::Stopped)));
    drop(server);
    assert!(began.elapsed() < Duration::from_secs(8), "nobody waits for the step");
}

#[test]
fn a_device_that_answers_too_late_gives_its_memory_back_before_the_server_is_gone() {
    let options = ServeOptions {
        step_deadline: Duration::from_millis(500),
        ..ServeOptions::default()
    };
    let dropped = Arc::new(AtomicBool::new(false));
    let of_backend = Arc::clone(&dropped);
    let server = Server::start(options, move || {
        let model = model();
        let mut backend = planted(&[(2, Fault::Sleep(Duration::from_secs(2)))]);
        backend.hook.dropped = Some(of_backend);
        let mut engine = Engine::new(backend, &model, small_engine())?;
        // The first step builds no graph: it is as quick as the others.
        engine.warm_up()?;
        Ok(Generator::new(engine, model.tokenizer()?))
    })
    .expect("it starts");
    let handle = server.handle();
    let (_, end) = collect(handle.submit(greedy(&[7, 8], 40)).expect("taken"));
    assert!(matches!(end, Err(ServeError::StepDeadline { .. })), "{end:?}");
    assert!(handle.figures().is_stuck());
    let began = Instant::now();
    while handle.figures().is_stuck() {
        assert!(began.elapsed() < Duration::from_secs(60), "the step does not come back");
        std::thread::yield_now();
    }
    drop(server);
    assert!(dropped.load(Ordering::SeqCst), "the engine still holds its memory");
}

#[test]
fn a_text_that_can_never_fit_is_refused_unread() {
    let server = server(ServeOptions::default(), &[]);
    // Were it read, this would take minutes in a debug build.
    let text = "a".repeat(16 << 20);
    match server.handle().submit(Request::new(text.as_str())) {
        Err(ServeError::Refused(error)) => {
            assert!(
                matches!(*error, GenerateError::TextTooLong { bytes, context: 96, .. } if bytes == text.len()),
                "{error}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_panic_of_the_engine_ends_all_requests_with_an_error() {
    let server = server(ServeOptions::default(), &[(2, Fault::Panic)]);
    let (_, end) = collect(server.handle().submit(greedy(&[7, 8], 40)).expect("taken"));
    assert!(matches!(end, Err(ServeError::Stopped)), "{end:?}");
    drop(server);
    let started = Server::start(ServeOptions::default(), || -> Result<Generator<CpuBackend>, _> {
        panic!("planted")
    });
    assert!(matches!(started, Err(ServeError::Stopped)), "{started:?}");
    let absent = || -> Result<Generator<CpuBackend>, _> { Err(Model::open("/nowhere").expect_err("it is absent")) };
    let started = Server::start(ServeOptions::default(), absent);
    assert!(matches!(started, Err(ServeError::Start(_))), "{started:?}");
}

#[test]
fn events_that_are_dropped_cancel_their_request_and_a_sink_may_submit() {
    let server = server(ServeOptions::default(), &[]);
    let handle = server.handle();
    drop(handle.submit(greedy(&[7, 8], 90)).expect("taken"));
    let ends = Arc::new(AtomicUsize::new(0));
    let (of_sink, counted) = (handle.clone(), Arc::clone(&ends));
    let sink = move |event: Result<Event, ServeError>| {
        if matches!(event, Ok(Event::Finished { .. })) {
            let counted = Arc::clone(&counted);
            let next = move |event: Result<Event, ServeError>| {
                counted.fetch_add(
                    usize::from(matches!(event, Ok(Event::Finished { .. }))),
                    Ordering::SeqCst,
                );
            };
            of_sink.submit_to(greedy(&[9], 2), next).expect("room");
        }
    };
    handle.submit_to(greedy(&[7, 8], 3), sink).expect("room");
    let (ids, _) = collect(handle.submit(greedy(&[1, 2, 3], 5)).expect("room"));
    assert_eq!(ids.len(), 5);
    let began = Instant::now();
    while ends.load(Ordering::SeqCst) == 0 {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "the request of the sink does not end"
        );
        std::thread::yield_now();
    }
    server.drain();
    assert_eq!(handle.figures().open, 0);
}

#[test]
fn a_sink_that_panics_ends_its_own_request_only() {
    let server = server(ServeOptions::default(), &[]);
    let handle = server.handle();
    let sink = |event: Result<Event, ServeError>| assert!(!matches!(event, Ok(Event::Token { .. })), "planted");
    handle.submit_to(greedy(&[7, 8], 60), sink).expect("room");
    let (ids, end) = collect(handle.submit(greedy(&[9], 20)).expect("room"));
    assert_eq!((ids, end.expect("it ends")), (alone(&[9], 20), FinishReason::MaxTokens));
    server.drain();
    assert_eq!(handle.figures().open, 0);
}

#[test]
fn a_sink_that_stops_the_server_gets_its_last_event() {
    let server = server(ServeOptions::default(), &[]);
    let handle = server.handle();
    let ends = Arc::new(AtomicUsize::new(0));
    let both_sent = Arc::new(AtomicBool::new(false));
    let (of_sink, counted, both) = (handle.clone(), Arc::clone(&ends), Arc::clone(&both_sent));
    let sink = move |event: Result<Event, ServeError>| match event {
        Ok(Event::Token { .. }) => {
            // A server that has stopped takes no other request.
            while !both.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            of_sink.stop();
        }
        Err(ServeError::Stopped) => drop(counted.fetch_add(1, Ordering::SeqCst)),
        _ => {}
    };
    handle.submit_to(greedy(&[7, 8], 60), sink).expect("room");
    let other = handle.submit(greedy(&[9], 90)).expect("room");
    both_sent.store(true, Ordering::SeqCst);
    let (_, end) = collect(other);
    assert!(matches!(end, Err(ServeError::Stopped)), "{end:?}");
    drop(server);
    assert_eq!(ends.load(Ordering::SeqCst), 1);
}
