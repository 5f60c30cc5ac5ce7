//! Designed experiments: which combinations of levels are run, and what the responses say of each factor.
//!
//! It knows numbers of levels and no specification, makes no run and reads no clock: designs come out of it, responses go in, effects
//! with intervals come out. Sources: Box, Hunter and Hunter (designs), Jain 1991 chapters 16 to 22 (analysis), Welch and Satterthwaite
//! (unequal spread), Lenth 1989 (no replicates).
//!
//! | module | one idea |
//! | --- | --- |
//! | `design` | the combinations that are run: full, fractions, screening, one factor at a time |
//! | `generators` | which columns the fractions and the screening designs are made of |
//! | `terms` | effects and interactions as columns of a matrix, and which of them a design cannot separate |
//! | `fit` | least squares, and the interval of any contrast |
//! | `alone` | what each factor brings by itself, and the rank that gives it |
//! | `answer` | effects, shares of variation, ranks with ties, checks of residuals |
//! | `purchase` | what a set of improvements costs and brings |

#![expect(clippy::cast_precision_loss, reason = "counts of runs and levels")]

mod alone;
pub mod answer;
pub mod design;
pub mod fit;
mod generators;
pub mod purchase;
pub mod terms;

pub use alone::EffectAlone;
pub use answer::{Effect, EffectScale, FactorAnswer, analyse};
pub use design::{Design, DesignKind, Wish};
pub use fit::{Estimate, FactorObservation};
pub use terms::Term;
