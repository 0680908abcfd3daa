//! Loading: a model's engine on a machine, with progress and the context that was taken.

use rocmforge::memory::Bytes;
use rocmforge::models::bert::Bert;
use rocmforge::models::generate::Generator;
use rocmforge::models::{Engine, EngineOptions, Limit, Model, ModelError};

use crate::failure::Failure;
use crate::machine::Machine;
use crate::options::Options;
use crate::progress::Progress;
use crate::store::Store;

/// Opens the model of this name; fetches one that is known by its name and not there.
pub(crate) fn open(name: &str) -> Result<Model, Failure> {
    let path = Store::of_user()?.path_of(name)?;
    Model::open(path).map_err(|error| match error {
        ModelError::IsEncoder { architecture } => {
            let what = format!("{architecture} is an encoder: it makes embeddings of texts and no text");
            format!("{what}. `rocmforge serve -m '{name}'` serves them").into()
        }
        error => error.into(),
    })
}

/// Whether the model of a path can be opened: a decoder, or an encoder, which is for the server.
pub(crate) fn check(path: &std::path::Path) -> Result<(), ModelError> {
    match Model::open(path) {
        Err(ModelError::IsEncoder { .. }) => Bert::open(path).map(drop),
        model => model.map(drop),
    }
}

/// Loads the weights of the model that is called `name` and makes its cache. Says what was loaded, and the context.
pub(crate) fn engine<M: Machine>(
    model: &Model,
    machine: M,
    (name, settings): (&str, EngineOptions),
) -> Result<Engine<M>, Failure> {
    let progress = Progress::new(&format!("loading {name}"));
    let engine = Engine::with_progress(machine, model, settings, |done, total| progress.set(done, total))?;
    drop(progress);
    let context = engine.max_context();
    let why = match settings.max_context {
        Limit::Tokens(_) => "",
        Limit::Auto if context == model.config().context => ", all that the model was made for",
        Limit::Auto => ", the largest that fits",
    };
    let weights = Bytes(engine.memory().weights as u64);
    eprintln!("{weights} of weights, context {context} tokens{why}");
    Ok(engine)
}

/// [`engine`] with the model's tokenizer.
pub(crate) fn generator<M: Machine>(model: &Model, machine: M, options: &Options) -> Result<Generator<M>, Failure> {
    let tokenizer = model.tokenizer()?;
    let engine = engine(model, machine, (&options.model, options.machine.engine()))?;
    Ok(Generator::new(engine, tokenizer))
}
