//! Events of one request as an iterator.

use rocmforge_ggml::HostAccess;

use super::event::{Completion, CompletionParts, Event};
use super::{GenerateError, Generator, RequestId};

/// Runs a generator until one request has ended, and yields its events. Other requests of the generator go on meanwhile; their
/// events are kept for [`Generator::step`]. Dropping it cancels the request.
///
/// After an error it ends.
pub struct Stream<'a, B: HostAccess> {
    generator: &'a mut Generator<B>,
    request: RequestId,
    ended: bool,
}

impl<'a, B: HostAccess> Stream<'a, B> {
    pub(super) fn new(generator: &'a mut Generator<B>, request: RequestId) -> Self {
        Self {
            generator,
            request,
            ended: false,
        }
    }

    /// The request.
    #[must_use]
    pub const fn request(&self) -> RequestId {
        self.request
    }

    /// The generator.
    #[must_use]
    pub const fn generator(&self) -> &Generator<B> {
        self.generator
    }

    /// Ends the request; what is still yielded ends with [`FinishReason::Cancelled`](super::FinishReason::Cancelled).
    ///
    /// # Errors
    /// As [`Generator::cancel`].
    pub fn cancel(&mut self) -> Result<(), GenerateError> {
        self.generator.cancel(self.request).map(|_| ())
    }

    /// Runs the request to its end.
    ///
    /// # Errors
    /// As [`Generator::step`].
    pub fn complete(self) -> Result<Completion, GenerateError> {
        let mut parts = CompletionParts::default();
        for event in self {
            if let Some(completion) = parts.take(event?) {
                return Ok(completion);
            }
        }
        // Without an error the last event is always there; cancelled is what a request without one would be.
        Ok(parts.end(super::FinishReason::Cancelled, super::Stats::default()))
    }
}

impl<B: HostAccess> Iterator for Stream<'_, B> {
    type Item = Result<Event, GenerateError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            if let Some(event) = self.generator.take_event(self.request) {
                self.ended = matches!(event, Event::Finished { .. });
                return Some(Ok(event));
            }
            match self.generator.advance() {
                Ok(true) => {}
                Ok(false) => self.ended = true,
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

impl<B: HostAccess> Drop for Stream<'_, B> {
    fn drop(&mut self) {
        // It fails only for a sequence that is not in the cache, which then holds nothing either.
        let _ = self.generator.cancel(self.request);
        while self.generator.take_event(self.request).is_some() {}
    }
}

impl<B: HostAccess> std::fmt::Debug for Stream<'_, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream")
            .field("request", &self.request)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}
