//! Values of layers: one for all, or one for each.

/// A value for each layer: one for all, or one of its own for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerLayer<T = usize> {
    first: T,
    others: Vec<T>,
}

impl<T: PartialEq> PerLayer<T> {
    /// The same for all layers.
    #[must_use]
    pub const fn all(value: T) -> Self {
        Self {
            first: value,
            others: Vec::new(),
        }
    }

    /// One of its own for each layer; `None` for none at all.
    #[must_use]
    pub fn each(values: impl IntoIterator<Item = T>) -> Option<Self> {
        let mut values = values.into_iter();
        let first = values.next()?;
        let others: Vec<T> = values.collect();
        Some(match others.iter().all(|other| *other == first) {
            true => Self::all(first),
            false => Self { first, others },
        })
    }

    /// The layer's value; that of the first where it has none of its own.
    #[must_use]
    pub fn get(&self, layer: usize) -> &T {
        let own = layer.checked_sub(1).and_then(|other| self.others.get(other));
        own.unwrap_or(&self.first)
    }

    /// The values: one, or one for each layer.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

impl<T: Clone + PartialEq> PerLayer<T> {
    /// Those of the first layers.
    pub(crate) fn first(&self, layers: usize) -> Self {
        let first = self.values().take(layers.max(1)).cloned();
        Self::each(first).unwrap_or_else(|| self.clone())
    }
}

impl PerLayer {
    /// The layer's number.
    #[must_use]
    pub fn of(&self, layer: usize) -> usize {
        *self.get(layer)
    }
}
