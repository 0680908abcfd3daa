//! Faults in the middle, figures, and forms of answers.

mod common;

mod suite {
    mod context;
    mod ends;
    mod faults;
    mod figures;
    mod forms;
}
