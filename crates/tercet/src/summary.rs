//! Summaries of containers of any format.

use serde::Serialize;
use tercet_tatami as tatami;
use tercet_tet as tet;
use tercet_tgm as tgm;

/// The summary of a container: what `Container::summary` returns. Serializes as the summary of the format.
#[derive(Debug, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Summary {
    /// Summary of a `.tet` file.
    Tet(Box<tet::Summary>),
    /// Summary of a `.tgm` file.
    Tgm(Box<tgm::Summary>),
    /// Summary of a `.tatami` file.
    Tatami(Box<tatami::Summary>),
}
