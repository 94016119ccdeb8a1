//! What a host knows of tool servers.

use std::collections::BTreeMap;

use super::Host;
use crate::servers::{Configured, Environment, Pool};

impl Host {
    /// The servers that run.
    pub(crate) fn servers(&self) -> &Pool {
        &self.0.servers
    }

    /// The servers that assistants can ask for by name.
    pub(crate) fn configured_servers(&self) -> &Configured {
        &self.0.options.servers
    }

    /// Variables for what is written of servers.
    pub(crate) fn environment(&self) -> &Environment {
        &self.0.options.environment
    }

    /// Variables that every server gets.
    pub(crate) fn server_variables(&self) -> &BTreeMap<String, String> {
        &self.0.options.server_variables
    }

    /// Names of variables that hold keys of models.
    pub(crate) fn key_variables(&self) -> Vec<String> {
        self.0.options.key_variables.clone()
    }
}
