/** One turn of a conversation. */
export interface Message {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content: string | readonly ContentBlock[] | Readonly<Record<string, unknown>>;
  readonly name?: string;
  readonly toolCalls?: readonly ToolCall[];
}

export type ContentBlock =
  | { readonly type: 'text'; readonly value: string }
  | { readonly type: 'file'; readonly value: string; readonly path: string; readonly text: string }
  | { readonly type: 'image'; readonly value: string };

export interface ToolCall {
  readonly id: string | null;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** Milliseconds, where known. */
  readonly durationMs?: number;
  /** What the tool gave, where it is part of the call. */
  readonly output?: string;
  /** The name by which the agent calls the tool, where `name` is canonical. */
  readonly nativeName?: string;
}

export interface TraceSummary {
  /** Messages and tool calls. */
  readonly eventCount: number;
  readonly toolCalls: number;
  /** Calls of tools and models that failed. */
  readonly errorCount: number;
  readonly llmCallCount: number;
  /** Calls and errors of each tool, in the order of their first calls. */
  readonly tools: readonly { readonly name: string; readonly calls: number; readonly errors: number }[];
  readonly tokenUsage: TokenUsage | null;
  readonly costUsd: number | null;
  readonly durationMs: number | null;
}

export interface TokenUsage {
  readonly input: number | null;
  readonly output: number | null;
  readonly total: number | null;
  readonly cached: number | null;
  readonly reasoning: number | null;
}

export interface Trace {
  readonly messages: readonly Message[];
  readonly events: readonly Readonly<Record<string, unknown>>[];
  readonly metrics: Readonly<Record<string, unknown>>;
  readonly provenance: Readonly<Record<string, unknown>>;
}

/** A retrieved text with what the target says of it; one of which nothing is said is a string. */
export interface RetrievedText {
  readonly text: string;
  readonly source?: string;
  readonly score?: number;
  readonly metadata?: Readonly<Record<string, any>>;
}

/** One answer and all that is known of how it came about. */
export interface AssertionContext {
  /** The messages that the target got. */
  readonly input: readonly Message[];
  /** The final answer; null where there is none. */
  readonly output: string | null;
  /** The transcript of the target. */
  readonly messages: readonly Message[];
  /** The reference answer; empty where the case has none. */
  readonly expectedOutput: readonly Message[];
  /** What a right answer does. */
  readonly criteria: string | null;
  readonly metadata: Readonly<Record<string, any>>;
  /** The texts that the target retrieved, in its order. */
  readonly context: readonly (string | RetrievedText)[];
  /** What else the target's reply says of it. */
  readonly responseMetadata: Readonly<Record<string, any>>;
  readonly vars: Readonly<Record<string, any>>;
  /** The keys of the entry that agentv itself does not know. */
  readonly config: Readonly<Record<string, any>>;
  /** The entry's `value`, where it has one. */
  readonly value?: any;
  readonly inputFiles: readonly string[];
  readonly trace: Trace | null;
  readonly traceSummary: TraceSummary | null;
  readonly tokenUsage: TokenUsage | null;
  readonly costUsd: number | null;
  readonly durationMs: number | null;
  readonly workspacePath: string | null;
}

export interface AssertionCheck {
  readonly text: string;
  readonly passed: boolean;
  readonly evidence?: string;
}

/** A verdict; `pass` or `score` must be given. */
export interface AssertionScore {
  /** If omitted, `score >= 0.5`. */
  readonly pass?: boolean;
  /** 0 to 1, clamped. If omitted, 1 or 0 as it passed. */
  readonly score?: number;
  readonly assertions?: readonly AssertionCheck[];
  readonly reason?: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

export type AssertionHandler = (
  context: AssertionContext,
) => AssertionScore | boolean | number | Promise<AssertionScore | boolean | number>;

export type ScriptGraderInput = AssertionContext;
export type ScriptGraderResult = AssertionScore & {
  readonly hits?: readonly string[];
  readonly misses?: readonly string[];
  readonly reasoning?: string;
};
export type ScriptGraderHandler = (input: ScriptGraderInput) => ScriptGraderResult | Promise<ScriptGraderResult>;
/**
 * What a judge prompt is made of. `output`, `answer` and `candidateAnswer` are the answer between markers that are new
 * for every call; the prompt must show them whole.
 */
export interface PromptTemplateInput extends Omit<AssertionContext, 'context'> {
  readonly question: string;
  readonly answer: string;
  readonly candidateAnswer: string;
  readonly referenceAnswer: string;
  readonly expectedOutcome: string;
  readonly sidecar: Readonly<Record<string, any>>;
  readonly rubrics: string;
  readonly toolCalls: string;
  readonly fileChanges: string;
  /** What was retrieved, for the `context-…` types; between markers too. */
  readonly context?: string;
  /** What an agent did, for `trajectory:goal-success`; between markers too. */
  readonly transcript?: string;
}
export type PromptTemplateResult = string | readonly { readonly role: string; readonly content: string }[];
export type PromptTemplateHandler = (input: PromptTemplateInput) => PromptTemplateResult | Promise<PromptTemplateResult>;

/** A reusable assertion: a file in `.agentv/assertions/` whose name is the type. */
export function defineAssertion<H extends AssertionHandler>(handler: H): H;
/** A grader that an entry of `type: script` starts by its command. */
export function defineScriptGrader<H extends ScriptGraderHandler>(handler: H): H;
/** @deprecated Use defineScriptGrader. */
export function defineCodeGrader<H extends ScriptGraderHandler>(handler: H): H;
/** @deprecated Use defineScriptGrader. */
export function defineCodeJudge<H extends ScriptGraderHandler>(handler: H): H;
/** A prompt made by code: prints the text that the handler returns. */
export function definePromptTemplate<H extends PromptTemplateHandler>(handler: H): H;

export interface TargetInvokeRequest {
  readonly question: string;
  readonly systemPrompt?: string;
}

export interface TargetInvokeResponse {
  readonly output: readonly unknown[];
  readonly rawText?: string;
}

export interface TargetInfo {
  readonly targetName: string;
  readonly maxCalls: number;
  readonly callCount: number;
  readonly availableTargets: readonly string[];
}

export interface TargetClient {
  invoke(request: TargetInvokeRequest): Promise<TargetInvokeResponse>;
  invokeBatch(requests: readonly TargetInvokeRequest[]): Promise<readonly TargetInvokeResponse[]>;
  getInfo(): Promise<TargetInfo>;
}

export class TargetNotAvailableError extends Error {}
export class TargetInvocationError extends Error {
  readonly statusCode?: number;
}

/** A client of the judge, or undefined where the script was given no target. */
export function createTargetClient(): TargetClient | undefined;
