// Types of requests and answers, made from docs/openapi.json by `npm run generate`.
// Not edited by hand: a test fails where this file and the document part ways.

export interface components {
    schemas: {
        Error: {
            /** @description What went wrong, for people. */
            error: string;
        };
        /**
         * @example {
         *       "name": "Welcome a lead",
         *       "status": "ACTIVE",
         *       "steps": [
         *         {
         *           "id": "start",
         *           "type": "TRIGGER",
         *           "next": [
         *             "tell"
         *           ]
         *         },
         *         {
         *           "id": "tell",
         *           "type": "NOTIFY",
         *           "event": "lead_welcomed",
         *           "data": {
         *             "email": "{{ trigger.email }}"
         *           }
         *         }
         *       ]
         *     }
         */
        WorkflowDefinition: {
            /** @description If given, must equal the id in the path. */
            workflowId?: string | null;
            /** @example Welcome a lead */
            name: string;
            /** @enum {string} */
            status: "DRAFT" | "ACTIVE" | "PAUSED" | "ARCHIVED";
            /** @description A run that takes longer is FAILED. Default: one day. */
            timeoutSeconds?: number | null;
            steps: (components["schemas"]["TriggerStep"] | components["schemas"]["HttpStep"] | components["schemas"]["NotifyStep"] | components["schemas"]["ConditionStep"] | components["schemas"]["DelayStep"] | components["schemas"]["WaitForEventStep"] | components["schemas"]["RecordStep"])[];
        };
        TriggerStep: {
            id: string;
            /** @constant */
            type: "TRIGGER";
            /** @description The steps that follow. */
            next?: string[] | null;
            /**
             * @description Start after the first predecessor (`any`) or after all that are not skipped (`all`).
             * @enum {string|null}
             */
            join?: "any" | "all" | null;
            on?: {
                /** @example lead.created */
                event: string;
                /** @example data.score >= 50 */
                filter?: string | null;
            } | {
                /**
                 * @description Cron expression: minute, hour, day of month, month, day of week.
                 * @example 0 9 * * 1-5
                 */
                schedule: string;
                /** @description IANA time zone such as `Europe/Berlin`. Default: `UTC`. */
                timezone?: string | null;
            } | null;
        };
        HttpStep: {
            id: string;
            /** @constant */
            type: "HTTP";
            /** @description The steps that follow. */
            next?: string[] | null;
            /**
             * @description Start after the first predecessor (`any`) or after all that are not skipped (`all`).
             * @enum {string|null}
             */
            join?: "any" | "all" | null;
            /**
             * @description Default `GET`; required if there is a body.
             * @enum {string|null}
             */
            method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | null;
            /** @example https://crm.example/leads/{{ trigger.id }} */
            url: string;
            headers?: {
                [key: string]: string;
            } | null;
            /** @description JSON; strings in it may be templates. */
            body?: unknown;
            timeoutSeconds?: number | null;
            retry?: {
                maxAttempts?: number | null;
                initialSeconds?: number | null;
                maxSeconds?: number | null;
            } | null;
            /** @description Statuses that count as success. Default: 2xx. */
            acceptStatus?: number[] | null;
        };
        NotifyStep: {
            id: string;
            /** @constant */
            type: "NOTIFY";
            /** @description The steps that follow. */
            next?: string[] | null;
            /**
             * @description Start after the first predecessor (`any`) or after all that are not skipped (`all`).
             * @enum {string|null}
             */
            join?: "any" | "all" | null;
            /** @description The event's type becomes `custom.<event>`. */
            event: string;
            /** @description The event's data; strings in it may be templates. */
            data?: Record<string, unknown> | null;
        };
        ConditionStep: {
            id: string;
            /** @constant */
            type: "CONDITION";
            /**
             * @description Start after the first predecessor (`any`) or after all that are not skipped (`all`).
             * @enum {string|null}
             */
            join?: "any" | "all" | null;
            /** @example trigger.score >= 80 */
            if: string;
            /** @description The steps that follow. */
            then?: string[] | null;
            /** @description The steps that follow. */
            else?: string[] | null;
        };
        DelayStep: {
            id: string;
            /** @constant */
            type: "DELAY";
            /** @description The steps that follow. */
            next?: string[] | null;
            /**
             * @description Start after the first predecessor (`any`) or after all that are not skipped (`all`).
             * @enum {string|null}
             */
            join?: "any" | "all" | null;
            seconds: number;
        };
        WaitForEventStep: {
            id: string;
            /** @constant */
            type: "WAIT_FOR_EVENT";
            /** @description The steps that follow. */
            next?: string[] | null;
            /**
             * @description Start after the first predecessor (`any`) or after all that are not skipped (`all`).
             * @enum {string|null}
             */
            join?: "any" | "all" | null;
            /** @example lead.created */
            event: string;
            /** @example data.email == trigger.email */
            match?: string | null;
            /** @description How long to wait. Default: until the run's own timeout. */
            timeoutSeconds?: number | null;
            /** @description The steps that follow. */
            onTimeout?: string[] | null;
        };
        RecordStep: {
            id: string;
            /** @constant */
            type: "RECORD";
            /** @description The steps that follow. */
            next?: string[] | null;
            /**
             * @description Start after the first predecessor (`any`) or after all that are not skipped (`all`).
             * @enum {string|null}
             */
            join?: "any" | "all" | null;
            /** @enum {string} */
            kind: "companies" | "deals" | "contacts" | "orders" | "leads" | "clients";
            /** @description May be a template. Default: the data's own `id`, or a new one. */
            recordId?: string | null;
            /** @description The record's fields; strings in it may be templates. */
            data: Record<string, unknown>;
        };
        SavedWorkflow: {
            /** @example welcome-a-lead */
            workflowId: string;
            version: number;
        };
        WorkflowSummary: {
            workflowId: string;
            name: string;
            /** @enum {string} */
            status: "DRAFT" | "ACTIVE" | "PAUSED" | "ARCHIVED" | (string & {});
            version: number;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            updatedAt: string;
        };
        Workflow: {
            workflowId: string;
            name: string;
            /** @enum {string} */
            status: "DRAFT" | "ACTIVE" | "PAUSED" | "ARCHIVED" | (string & {});
            version: number;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            updatedAt: string;
            timeoutSeconds: number;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            createdAt: string;
            steps: Record<string, unknown>[];
        };
        RunStep: {
            id: string;
            /** @enum {string} */
            type: "TRIGGER" | "HTTP" | "NOTIFY" | "CONDITION" | "DELAY" | "WAIT_FOR_EVENT" | "RECORD" | (string & {});
            /** @enum {string} */
            state: "QUEUED" | "RUNNING" | "WAITING" | "SUCCEEDED" | "FAILED" | "CANCELLED" | "SKIPPED" | (string & {});
            attempts: {
                number: number;
                /**
                 * Format: date-time
                 * @example 2026-11-21T09:30:00Z
                 */
                startedAt: string;
                /**
                 * Format: date-time
                 * @example 2026-11-21T09:30:00Z
                 */
                endedAt: string | null;
                error: string | null;
            }[];
            /** @description The step's input. */
            input: unknown;
            /** @description For an HTTP step: `{status, headers, body}`. */
            output: unknown;
        };
        Run: {
            runId: string;
            workflowId: string;
            workflowVersion: number;
            /** @enum {string} */
            state: "QUEUED" | "RUNNING" | "WAITING" | "SUCCEEDED" | "FAILED" | "CANCELLED" | (string & {});
            triggerPayload: Record<string, unknown>;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            startedAt: string | null;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            endedAt: string | null;
            error: string | null;
            steps: components["schemas"]["RunStep"][];
        };
        Order: {
            id: string;
            /** @example WP-00870 */
            orderNumber: string;
            /** @enum {string} */
            status: "PAYMENT_PENDING" | "ACTIVE" | "COMPLETED" | "CANCELLED" | (string & {});
            /** @description In minor units. */
            amount: number;
            plan: string | null;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            createdAt: string;
            client: {
                name: string | null;
                email: string | null;
            };
            product: {
                name: string | null;
            };
        };
        Lead: {
            id: string;
            name: string;
            phone: string | null;
            email: string | null;
            service: string | null;
            source: string | null;
            status: string | null;
            score: number;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            createdAt: string;
        };
        Client: {
            id: string;
            name: string;
            email: string | null;
            phone: string | null;
            company: string | null;
            city: string | null;
            isActive: boolean;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            createdAt: string;
        };
        Analytics: {
            /** @description Revenue of ACTIVE and COMPLETED orders, in minor units (cents). */
            totalRevenue: number;
            totalOrders: number;
            totalLeads: number;
            /** @description 100 × totalOrders ÷ totalLeads, rounded to two decimals; 0 without leads. */
            conversionRate: number;
            /** @description The last 12 months including this one (UTC), oldest first. */
            monthlyRevenue: {
                month: string;
                /** @description In minor units. */
                revenue: number;
            }[];
            /** @description Step by step, oldest first; only with `from` and `to`. */
            series?: {
                /**
                 * Format: date
                 * @description The first day of the step within the span.
                 * @example 2026-01-31
                 */
                start: string;
                /** @description Of ACTIVE and COMPLETED orders created in it. */
                revenue: number;
                orders: number;
                leads: number;
                /** @description The step by what it has in the field, by value; only with `groupBy`. */
                groups?: {
                    /** @description As it was written, its first 100 characters; null for those that have none. */
                    value: string | null;
                    /** @description Of ACTIVE and COMPLETED orders created in it. */
                    revenue: number;
                    orders: number;
                    leads: number;
                    clients: number;
                }[];
            }[];
        };
        RecordId: {
            id: string;
        };
        StoredCompany: {
            id: string;
            /** @example Acme */
            name: string;
            domain: string | null;
            industry: string | null;
            phone: string | null;
            email: string | null;
            address: string | null;
            city: string | null;
            country: string | null;
            owner: string | null;
            employees: number | null;
            /** @description In minor units. */
            annualRevenue: number | null;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            updatedAt: string;
        };
        CompanyRecord: {
            /** @description A new one if absent. */
            id?: string | null;
            /** @example Acme */
            name: string;
            domain?: string | null;
            industry?: string | null;
            phone?: string | null;
            email?: string | null;
            address?: string | null;
            city?: string | null;
            country?: string | null;
            owner?: string | null;
            employees?: number | null;
            /** @description In minor units. */
            annualRevenue?: number | null;
            /**
             * Format: date-time
             * @description Now if absent.
             * @example 2026-11-21T09:30:00Z
             */
            createdAt?: string | null;
        };
        StoredDeal: {
            id: string;
            /** @example Heat pumps for Acme */
            title: string;
            stage: string | null;
            currency: string | null;
            companyId: string | null;
            companyName: string | null;
            contactId: string | null;
            contactName: string | null;
            owner: string | null;
            /** @description In minor units. */
            amount: number | null;
            /** @description In percent. */
            probability: number | null;
            /** Format: date */
            expectedCloseDate: string | null;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            updatedAt: string;
        };
        DealRecord: {
            /** @description A new one if absent. */
            id?: string | null;
            /** @example Heat pumps for Acme */
            title: string;
            stage?: string | null;
            currency?: string | null;
            companyId?: string | null;
            companyName?: string | null;
            contactId?: string | null;
            contactName?: string | null;
            owner?: string | null;
            /** @description In minor units. */
            amount?: number | null;
            /** @description In percent. */
            probability?: number | null;
            /** Format: date */
            expectedCloseDate?: string | null;
            /**
             * Format: date-time
             * @description Now if absent.
             * @example 2026-11-21T09:30:00Z
             */
            createdAt?: string | null;
        };
        StoredContact: {
            id: string;
            firstName: string | null;
            lastName: string | null;
            email: string | null;
            phone: string | null;
            jobTitle: string | null;
            companyId: string | null;
            companyName: string | null;
            city: string | null;
            country: string | null;
            owner: string | null;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            updatedAt: string;
        };
        ContactRecord: {
            /** @description A new one if absent. */
            id?: string | null;
            firstName?: string | null;
            lastName?: string | null;
            email?: string | null;
            phone?: string | null;
            jobTitle?: string | null;
            companyId?: string | null;
            companyName?: string | null;
            city?: string | null;
            country?: string | null;
            owner?: string | null;
            /**
             * Format: date-time
             * @description Now if absent.
             * @example 2026-11-21T09:30:00Z
             */
            createdAt?: string | null;
        } | {
            /** @example Zoë */
            firstName: string;
        } | {
            /** @example Zoë */
            lastName: string;
        } | {
            /** @example Zoë */
            email: string;
        };
        StoredOrder: {
            id: string;
            /** @example WP-00870 */
            orderNumber: string;
            /** @enum {string} */
            status: "PAYMENT_PENDING" | "ACTIVE" | "COMPLETED" | "CANCELLED" | (string & {});
            /** @description In minor units. */
            amount: number;
            plan: string | null;
            client: {
                name?: string | null;
                email?: string | null;
            } | null;
            product: {
                name?: string | null;
            } | null;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            updatedAt: string;
        };
        OrderRecord: {
            /** @description A new one if absent. */
            id?: string | null;
            /** @example WP-00870 */
            orderNumber: string;
            /** @enum {string} */
            status: "PAYMENT_PENDING" | "ACTIVE" | "COMPLETED" | "CANCELLED";
            /** @description In minor units. */
            amount: number;
            plan?: string | null;
            client?: {
                name?: string | null;
                email?: string | null;
            } | null;
            product?: {
                name?: string | null;
            } | null;
            /**
             * Format: date-time
             * @description Now if absent.
             * @example 2026-11-21T09:30:00Z
             */
            createdAt?: string | null;
        };
        StoredLead: {
            id: string;
            /** @example Ada Lovelace */
            name: string;
            phone: string | null;
            email: string | null;
            service: string | null;
            source: string | null;
            status: string | null;
            score: number;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            updatedAt: string;
        };
        LeadRecord: {
            /** @description A new one if absent. */
            id?: string | null;
            /** @example Ada Lovelace */
            name: string;
            phone?: string | null;
            email?: string | null;
            service?: string | null;
            source?: string | null;
            status?: string | null;
            /** @description 0 if absent. */
            score?: number | null;
            /**
             * Format: date-time
             * @description Now if absent.
             * @example 2026-11-21T09:30:00Z
             */
            createdAt?: string | null;
        };
        StoredClient: {
            id: string;
            /** @example Ada Lovelace */
            name: string;
            email: string | null;
            phone: string | null;
            company: string | null;
            city: string | null;
            isActive: boolean;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            updatedAt: string;
        };
        ClientRecord: {
            /** @description A new one if absent. */
            id?: string | null;
            /** @example Ada Lovelace */
            name: string;
            email?: string | null;
            phone?: string | null;
            company?: string | null;
            city?: string | null;
            /** @description true if absent. */
            isActive?: boolean | null;
            /**
             * Format: date-time
             * @description Now if absent.
             * @example 2026-11-21T09:30:00Z
             */
            createdAt?: string | null;
        };
        /**
         * @example {
         *       "name": "Our web shop",
         *       "scopes": [
         *         "workflows:trigger"
         *       ]
         *     }
         */
        KeyRequest: {
            /** @example Our web shop */
            name: string;
            /**
             * @example [
             *       "workflows:trigger"
             *     ]
             */
            scopes: ("workflows:trigger" | "workflows:read" | "workflows:write" | "export:companies:read" | "export:deals:read" | "export:contacts:read" | "read:orders" | "read:leads" | "read:analytics" | "read:clients" | "records:write" | "webhooks:manage" | "events:read" | "circles:manage" | "keys:manage" | "admin")[];
            /** @description Requests in any rolling hour. Default: 1000, or the creating key's own limit if that is lower. */
            rateLimit?: number | null;
            /**
             * Format: date-time
             * @description Expiry, in the future. Default: that of the creating key, or none.
             * @example 2031-12-31T23:59:59Z
             */
            expiresAt?: string | null;
        };
        NewKey: {
            keyId: string;
            key: string;
        };
        Key: {
            keyId: string;
            name: string;
            scopes: string[];
            rateLimit: number;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            expiresAt: string | null;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            lastUsedAt: string | null;
            /** @description Who created it: a key's id, `owner` (a person, in the dashboard) or `operator`. */
            createdBy: string;
        };
        WebhookRequest: {
            /**
             * Format: uri
             * @example https://example.org/hooks
             */
            url: string;
            /**
             * @description Events to receive: `*`, a type, or a pattern such as `run.*`. Absent means all.
             * @example [
             *       "run.*",
             *       "sos.triggered"
             *     ]
             */
            events?: string[] | null;
            description?: string | null;
        };
        WebhookChange: {
            /**
             * Format: uri
             * @example https://example.org/hooks
             */
            url?: string | null;
            /**
             * @description Events to receive: `*`, a type, or a pattern such as `run.*`. Absent means all.
             * @example [
             *       "run.*",
             *       "sos.triggered"
             *     ]
             */
            events?: string[] | null;
            description?: string | null;
            /** @enum {string|null} */
            status?: "ENABLED" | "DISABLED" | null;
        };
        ReplayRequest: {
            deliveryId?: string;
            /** @description A position of either feed. */
            after?: string;
            /** @constant */
            failed?: true;
        };
        NewWebhook: {
            id: string;
            url: string;
            events: string[];
            /** @constant */
            status: "ENABLED";
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            createdAt: string;
            /** @example whsec_… */
            secret: string;
            description?: string;
        };
        ChangedWebhook: {
            id: string;
            url: string;
            events: string[];
            /** @enum {string} */
            status: "ENABLED" | "DISABLED" | (string & {});
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            createdAt: string;
            description?: string;
        };
        Webhook: {
            id: string;
            url: string;
            events: string[];
            /** @enum {string} */
            status: "ENABLED" | "DISABLED" | (string & {});
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            createdAt: string;
            description: string | null;
            /** @description Why Waypost disabled it. */
            disabledReason: string | null;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            updatedAt: string;
        };
        Delivery: {
            id: string;
            eventId: string;
            type: string;
            /** @enum {string} */
            status: "PENDING" | "SUCCEEDED" | "FAILED" | (string & {});
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            nextAttemptAt: string | null;
            /** @description The last 100, oldest first. */
            attempts: {
                /**
                 * Format: date-time
                 * @example 2026-11-21T09:30:00Z
                 */
                at: string;
                status: number | null;
                durationMs: number;
                error: string | null;
                /** @description Beginning of the answer's body. */
                response: string | null;
            }[];
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            createdAt: string;
        };
        Event: {
            position: string;
            id: string;
            /** @example run.succeeded */
            type: string;
            version: number;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            time: string;
            subject: string;
            correlationId: string | null;
            causationId: string | null;
            /** @description Depends on the type, see `/asyncapi.json`. */
            data: Record<string, unknown>;
        };
        Session: {
            /** @description A JSON Web Token. */
            access_token: string;
            /** @constant */
            token_type: "bearer";
            /** @description In seconds. */
            expires_in: number;
            user: {
                id: number;
                name: string;
                email: string;
            };
        };
        Registration: {
            /** @example Grace Hopper */
            name: string;
            /**
             * Format: email
             * @example grace@example.com
             */
            email: string;
            /** Format: password */
            password: string;
            /** @example +4915112345678 */
            phone?: string | null;
        };
        SignIn: {
            /** @example grace@example.com */
            email: string;
            /** Format: password */
            password: string;
        };
        CodeRequest: {
            /** @example +4915112345678 */
            phone: string;
        };
        Verification: {
            /** @example +4915112345678 */
            phone: string;
            /** @example 123456 */
            code: string;
        };
        AccountExport: {
            account: {
                id: number;
                name: string | null;
                email: string | null;
                phone: string | null;
                named_phone: string | null;
                tier: string;
                /**
                 * Format: date-time
                 * @example 2026-11-21T09:30:00Z
                 */
                created_at: string | null;
            };
            /** @description Those whose staff you belong to. */
            organizations: string[];
            /** @description Memberships, past ones included. */
            circles: Record<string, unknown>[];
            /** @description Those that you added. */
            places: Record<string, unknown>[];
            /** @description When you were hidden. */
            pauses: Record<string, unknown>[];
            /** @description Your calls for help, and who answered them. */
            sos: Record<string, unknown>[];
            /** @description When you entered and left places. */
            visits: Record<string, unknown>[];
            /** @description Newest first. */
            positions: Record<string, unknown>[];
        };
        AccountDeletion: {
            /** Format: password */
            password: string;
        };
        PasswordChange: {
            /** Format: password */
            old: string;
            /** Format: password */
            new: string;
        };
        /**
         * @example {
         *       "lat": 53.5511,
         *       "lng": 9.9937,
         *       "accuracy": 12,
         *       "place_name": "Harbour"
         *     }
         */
        Fix: {
            lat: number;
            lng: number;
            /** @description In metres. */
            accuracy?: number | null;
            /** @description In metres a second. */
            speed?: number | null;
            place_name?: string | null;
            battery?: number | null;
            /**
             * Format: date-time
             * @description At most 5 minutes in the future; now if absent.
             * @example 2026-11-21T09:30:00Z
             */
            recorded_at?: string | null;
        };
        Pause: {
            /**
             * Format: date-time
             * @description In the future.
             * @example 2031-12-31T23:59:59Z
             */
            until: string;
        };
        Position: {
            user_id: number;
            name: string;
            lat: number;
            lng: number;
            /** @description In metres. */
            accuracy: number | null;
            /** @description In metres a second. */
            speed: number | null;
            place_name: string | null;
            battery: number | null;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            recorded_at: string;
        };
        Trails: {
            data: components["schemas"]["Trail"][];
        };
        Trail: {
            user_id: number;
            name: string;
            /** @description Oldest first. */
            fixes: {
                lat: number;
                lng: number;
                /**
                 * Format: date-time
                 * @example 2026-11-21T09:30:00Z
                 */
                recorded_at: string;
            }[];
        };
        Positions: {
            data: components["schemas"]["Position"][];
        };
        CircleRequest: {
            /** @example Family */
            name: string;
        };
        NewCircle: {
            id: string;
            name: string;
        };
        Circle: {
            id: string;
            name: string | null;
            /** @description The organization that sees its members' positions, if there is one. */
            organization: string | null;
            members: {
                id: number;
                name: string;
            }[];
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            created_at: string;
        };
        JoinRequest: {
            code: string;
        };
        PlaceRequest: {
            /** @example School */
            name: string;
            lat: number;
            lng: number;
            /** @description In metres. */
            radius_m: number;
        };
        Place: {
            id: string;
            name: string;
            lat: number;
            lng: number;
            /** @description In metres. */
            radius_m: number;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            created_at: string;
        };
        Call: {
            /** @description Only with `lng`. */
            lat?: number | null;
            /** @description Only with `lat`. */
            lng?: number | null;
            message?: string | null;
            /**
             * Format: date-time
             * @description When the alert was raised. A late one still alerts, and is marked late.
             * @example 2026-11-21T09:30:00Z
             */
            recorded_at?: string | null;
        };
        OpenCall: {
            sos_id: string;
            user_id: number;
            name: string;
            lat: number | null;
            lng: number | null;
            message: string | null;
            /** @description It came long after it was raised. */
            late: boolean;
            /**
             * Format: date-time
             * @example 2026-11-21T09:30:00Z
             */
            recorded_at: string;
            /** @description Somebody has seen it. */
            acknowledged: boolean;
        };
        OpenCalls: {
            data: components["schemas"]["OpenCall"][];
        };
        Readiness: {
            /** @description What is not ready, if anything. */
            error?: string;
            ready: boolean;
            checks: {
                [key: string]: {
                    ok: boolean;
                    reason?: string;
                };
            };
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}

export type Error = components['schemas']['Error'];
export type WorkflowDefinition = components['schemas']['WorkflowDefinition'];
export type TriggerStep = components['schemas']['TriggerStep'];
export type HttpStep = components['schemas']['HttpStep'];
export type NotifyStep = components['schemas']['NotifyStep'];
export type ConditionStep = components['schemas']['ConditionStep'];
export type DelayStep = components['schemas']['DelayStep'];
export type WaitForEventStep = components['schemas']['WaitForEventStep'];
export type RecordStep = components['schemas']['RecordStep'];
export type SavedWorkflow = components['schemas']['SavedWorkflow'];
export type WorkflowSummary = components['schemas']['WorkflowSummary'];
export type Workflow = components['schemas']['Workflow'];
export type RunStep = components['schemas']['RunStep'];
export type Run = components['schemas']['Run'];
export type Order = components['schemas']['Order'];
export type Lead = components['schemas']['Lead'];
export type Client = components['schemas']['Client'];
export type Analytics = components['schemas']['Analytics'];
export type RecordId = components['schemas']['RecordId'];
export type StoredCompany = components['schemas']['StoredCompany'];
export type CompanyRecord = components['schemas']['CompanyRecord'];
export type StoredDeal = components['schemas']['StoredDeal'];
export type DealRecord = components['schemas']['DealRecord'];
export type StoredContact = components['schemas']['StoredContact'];
export type ContactRecord = components['schemas']['ContactRecord'];
export type StoredOrder = components['schemas']['StoredOrder'];
export type OrderRecord = components['schemas']['OrderRecord'];
export type StoredLead = components['schemas']['StoredLead'];
export type LeadRecord = components['schemas']['LeadRecord'];
export type StoredClient = components['schemas']['StoredClient'];
export type ClientRecord = components['schemas']['ClientRecord'];
export type KeyRequest = components['schemas']['KeyRequest'];
export type NewKey = components['schemas']['NewKey'];
export type Key = components['schemas']['Key'];
export type WebhookRequest = components['schemas']['WebhookRequest'];
export type WebhookChange = components['schemas']['WebhookChange'];
export type ReplayRequest = components['schemas']['ReplayRequest'];
export type NewWebhook = components['schemas']['NewWebhook'];
export type ChangedWebhook = components['schemas']['ChangedWebhook'];
export type Webhook = components['schemas']['Webhook'];
export type Delivery = components['schemas']['Delivery'];
export type Event = components['schemas']['Event'];
export type Session = components['schemas']['Session'];
export type Registration = components['schemas']['Registration'];
export type SignIn = components['schemas']['SignIn'];
export type CodeRequest = components['schemas']['CodeRequest'];
export type Verification = components['schemas']['Verification'];
export type AccountExport = components['schemas']['AccountExport'];
export type AccountDeletion = components['schemas']['AccountDeletion'];
export type PasswordChange = components['schemas']['PasswordChange'];
export type Fix = components['schemas']['Fix'];
export type Pause = components['schemas']['Pause'];
export type Position = components['schemas']['Position'];
export type Trails = components['schemas']['Trails'];
export type Trail = components['schemas']['Trail'];
export type Positions = components['schemas']['Positions'];
export type CircleRequest = components['schemas']['CircleRequest'];
export type NewCircle = components['schemas']['NewCircle'];
export type Circle = components['schemas']['Circle'];
export type JoinRequest = components['schemas']['JoinRequest'];
export type PlaceRequest = components['schemas']['PlaceRequest'];
export type Place = components['schemas']['Place'];
export type Call = components['schemas']['Call'];
export type OpenCall = components['schemas']['OpenCall'];
export type OpenCalls = components['schemas']['OpenCalls'];
export type Readiness = components['schemas']['Readiness'];
