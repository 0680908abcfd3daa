//! I: modules, functions, launches.
