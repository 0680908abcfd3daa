//! Loading: a model's generator on a machine, with progress and the context that was taken.

use rocmforge::memory::Bytes;
use rocmforge::models::generate::Generator;
use rocmforge::models::{Engine, Limit, Model};

use crate::failure::Failure;
use crate::machine::Machine;
use crate::options::Options;
use crate::progress::Progress;
use crate::store::Store;

/// Opens the model that the options name; fetches one that is known by its name and not there.
pub(crate) fn open(options: &Options) -> Result<Model, Failure> {
    let path = Store::of_user()?.path_of(&options.model)?;
    Ok(Model::open(path)?)
}

/// Loads the model's weights and makes its cache. Says what was loaded, and the context.
pub(crate) fn generator<M: Machine>(model: &Model, machine: M, options: &Options) -> Result<Generator<M>, Failure> {
    let progress = Progress::new(&format!("loading {}", options.model));
    let tokenizer = model.tokenizer()?;
    let settings = options.machine.engine();
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
    Ok(Generator::new(engine, tokenizer))
}
