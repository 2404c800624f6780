//! A workflow's definition, made ready to run: its graph and its templates, read once.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use domain::run::Graph;
use domain::template::{self, Address, Meter, Scope, Test, Tree, Within};
use schemas::StepId;
use schemas::workflow::{Action, Definition, Http, Notify, Status};
use serde_json::Value;

/// A definition, ready to run.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) graph: Graph,
    steps: Arc<BTreeSet<StepId>>,
    templates: HashMap<StepId, Result<Templates, template::Error>>,
    secrets: BTreeSet<String>,
}

/// The templates of one step.
#[derive(Debug)]
pub(super) enum Templates {
    None,
    Http(HttpTemplates),
    /// A NOTIFY step's data.
    Notify(Tree),
    Condition(Test),
    Record(RecordTemplates),
    /// What a `WAIT_FOR_EVENT` step waits for.
    Wait(Option<Test>),
}

#[derive(Debug)]
pub(super) struct RecordTemplates {
    pub(super) id: Option<Tree>,
    pub(super) data: Tree,
}

#[derive(Debug)]
pub(super) struct HttpTemplates {
    pub(super) url: Address,
    pub(super) headers: Tree,
    pub(super) body: Option<Tree>,
}

impl Templates {
    fn bytes(&self) -> usize {
        match self {
            Self::None | Self::Wait(None) => 0,
            Self::Http(http) => {
                let body = http.body.as_ref().map_or(0, Tree::bytes);
                http.url.bytes() + http.headers.bytes() + body
            }
            Self::Notify(data) => data.bytes(),
            Self::Condition(test) | Self::Wait(Some(test)) => test.bytes(),
            Self::Record(record) => record.data.bytes() + record.id.as_ref().map_or(0, Tree::bytes),
        }
    }
}

impl Program {
    pub(super) fn new(definition: Definition) -> Self {
        let mut secrets = BTreeSet::new();
        let mut templates = HashMap::new();
        for step in &definition.steps {
            let read = read(&step.action, &mut secrets);
            templates.entry(step.id.clone()).or_insert(read);
        }
        let steps = definition.steps.iter().map(|step| step.id.clone());
        Self {
            steps: Arc::new(steps.collect()),
            graph: Graph::new(definition),
            templates,
            secrets,
        }
    }

    /// A definition without steps.
    pub(super) fn empty() -> Self {
        Self::new(Definition {
            name: String::new(),
            status: Status::Draft,
            timeout_seconds: 0,
            steps: Vec::new(),
        })
    }

    pub(super) fn templates(&self, step: &StepId) -> Result<&Templates, &template::Error> {
        self.templates
            .get(step)
            .map_or(Ok(&Templates::None), |read| read.as_ref())
    }

    /// Whether an event is the one that a step waits for.
    pub(super) fn matches(
        &self,
        step: &StepId,
        scope: &Scope,
        meter: &Meter,
    ) -> Result<bool, template::Error> {
        match self.templates.get(step) {
            Some(Ok(Templates::Wait(Some(test)))) => test.holds(scope, meter),
            _ => Ok(true),
        }
    }

    /// Approximate memory of its templates.
    pub(super) fn bytes(&self) -> usize {
        let templates = self.templates.values().flatten();
        templates.map(Templates::bytes).sum()
    }

    /// The ids of its steps.
    pub(super) fn steps(&self) -> &Arc<BTreeSet<StepId>> {
        &self.steps
    }

    /// The secrets that its steps name.
    pub(super) fn secrets(&self) -> &BTreeSet<String> {
        &self.secrets
    }
}

fn read(action: &Action, secrets: &mut BTreeSet<String>) -> Result<Templates, template::Error> {
    let mut tree = |value: &Value, place: &str| read_tree(value, place, secrets);
    Ok(match action {
        Action::Trigger(_) | Action::Delay(_) => Templates::None,
        Action::WaitForEvent(wait) => {
            let test = wait.matching.as_deref();
            let test = test.map(|test| Test::parse(test, Within::Both)).transpose();
            Templates::Wait(test.map_err(|error| error.at("match"))?)
        }
        Action::Http(Http {
            url, headers, body, ..
        }) => {
            let address = Address::parse(url).map_err(|error| error.at("url"))?;
            secrets.extend(address.references().secrets.iter().cloned());
            let mut tree = |value: &Value, place: &str| read_tree(value, place, secrets);
            let headers = headers.iter();
            let headers = headers.map(|(name, value)| (name.clone(), Value::from(value.as_str())));
            Templates::Http(HttpTemplates {
                url: address,
                headers: tree(&headers.collect(), "headers")?,
                body: body.as_ref().map(|body| tree(body, "body")).transpose()?,
            })
        }
        Action::Notify(Notify { data, .. }) => {
            Templates::Notify(tree(&Value::Object(data.clone()), "data")?)
        }
        Action::Condition(condition) => {
            let test = Test::parse(&condition.test, Within::Run);
            Templates::Condition(test.map_err(|error| error.at("if"))?)
        }
        Action::Record(record) => {
            let id = record.record_id.as_ref();
            let id = id.map(|id| tree(&Value::from(id.as_str()), "recordId"));
            Templates::Record(RecordTemplates {
                id: id.transpose()?,
                data: tree(&Value::Object(record.data.clone()), "data")?,
            })
        }
    })
}

fn read_tree(
    value: &Value,
    place: &str,
    secrets: &mut BTreeSet<String>,
) -> Result<Tree, template::Error> {
    let tree = Tree::parse(value).map_err(|error| error.at(place))?;
    secrets.extend(tree.references().secrets);
    Ok(tree)
}
