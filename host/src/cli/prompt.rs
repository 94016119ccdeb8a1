//! `prompt`: the section for a system prompt that tells which assistants there are.

use clap::Args;

use super::catalog::Which;
use super::open::Setting;
use super::{Failure, Places, say, talk};
use crate::tools::profile::subagents;

#[derive(Args)]
pub(super) struct PromptArgs {
    #[command(flatten)]
    which: Which,
    /// Name at most this many
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

pub(super) fn prompt(places: &Places, args: &PromptArgs) -> Result<u8, Failure> {
    let setting = Setting::read(places)?;
    let registry = setting.registry();
    let wanted = |one: &&_| args.which.takes(one) && subagents::listed_for_sessions(one);
    let mut assistants: Vec<_> = registry.assistants().iter().map(AsRef::as_ref).filter(wanted).collect();
    assistants.sort_by(|one, other| one.id.cmp(&other.id));
    let count = assistants.len();
    say(subagents::section(assistants.into_iter(), usize::from(args.limit)).trim_end());
    if count == 0 {
        talk(&setting.where_read());
    }
    Ok(0)
}
