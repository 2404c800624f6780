//! Reads definitions: every template in them is compiled to check it.

use domain::workflow;
use schemas::workflow::Definition;
use schemas::{OrgId, WorkflowId};
use service::{HttpError, Shares};

use crate::Refusal;
use crate::body::JsonBody;

/// A document of more bytes than this is read on a separate thread.
const TRIFLE: usize = 4 * 1024;

/// Threads that read definitions, shared by organization; half of the processors are left for
/// everything else.
pub(crate) struct Reading(Shares<OrgId>);

impl Default for Reading {
    fn default() -> Self {
        Self(Shares::new(background::processors() / 2))
    }
}

impl Reading {
    pub(super) async fn definition<const MAX_BYTES: usize>(
        &self,
        org: &OrgId,
        id: &WorkflowId,
        body: &JsonBody<MAX_BYTES>,
    ) -> Result<Definition, HttpError> {
        let document = body.value()?;
        let read = if body.len() > TRIFLE {
            let (id, thread) = (id.clone(), self.0.enter(org.clone()).await);
            let reading = background::compute(move || {
                let _thread = thread;
                workflow::parse(&id, document)
            });
            reading.await.map_err(HttpError::internal)?
        } else {
            workflow::parse(id, document)
        };
        read.map_err(Refusal::into_http)
    }
}
