//! Compiles templates and evaluates them, for runs and for what sets them off.

use std::sync::Arc;

use domain::template::{Error, Meter, Test, Within};
use event_log::EventLog;
use schemas::OrgId;

use super::cache::Cache;
use super::evaluator::Evaluator;
use super::programs::Programs;
use super::settings::TemplateSettings;

const MIB: usize = 1024 * 1024;

/// Compiles and evaluates templates of all organizations. Clones are the same one.
#[derive(Clone)]
pub struct Renderer(Arc<Inner>);

struct Inner {
    evaluator: Evaluator,
    programs: Programs,
    filters: Cache<String, Test>,
}

impl Renderer {
    /// Creates a renderer; definitions are read from the log.
    pub fn new(log: EventLog, settings: &TemplateSettings) -> Self {
        let evaluator = Evaluator::new(settings);
        let room = settings.cache_mib.max(1).saturating_mul(MIB) / 2;
        Self(Arc::new(Inner {
            programs: Programs::new(log, evaluator.clone(), room),
            filters: Cache::new("filters", room),
            evaluator,
        }))
    }

    pub(super) fn evaluator(&self) -> &Evaluator {
        &self.0.evaluator
    }

    pub(super) fn programs(&self) -> &Programs {
        &self.0.programs
    }

    /// Whether a condition holds.
    pub(super) async fn ask<F>(&self, org: &OrgId, ask: F) -> Result<bool, String>
    where
        F: Fn(&Meter) -> Result<bool, Error> + Send + Sync + 'static,
    {
        match self.0.evaluator.run(org, ask).await {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(failed) => Err(failed.to_string()),
        }
    }

    /// The filter that decides whether an event sets a workflow off.
    pub(super) fn filter(&self, org: &OrgId, source: &str) -> Result<Arc<Test>, Error> {
        if let Some(filter) = self.0.filters.get(source) {
            return Ok(filter);
        }
        let filter = Test::parse(source, Within::Event)?;
        let bytes = source.len() + filter.bytes();
        Ok(self.0.filters.put(org, source.to_owned(), filter, bytes))
    }
}
