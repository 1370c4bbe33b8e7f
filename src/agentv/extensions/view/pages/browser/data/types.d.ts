// Types of what pages show. `Source` is the seam: a page does not know whether its data lie in its file or on a server.

export interface Counts {
  passed: number;
  failed: number;
  errored: number;
  skipped: number;
  shown: number;
}

/** A pass rate with its interval; `of`: what it counts, such as `judged case`. */
export interface Rate {
  rate: number;
  interval: [number, number] | null;
  judged: number;
  clusters: number;
  by: string[];
  bounds: [number, number];
  errored: number;
  of: string;
  cut: string | null;
}

/** A text, or the beginning of a longer one. */
export type Text = string | { cut: string; length: number };

export interface Trial {
  sample: number;
  repeat: number;
  status: string;
  score: number | null;
  threshold: number;
  duration: number;
  cost: number | null;
  teaser: string;
  [more: string]: any;
}

/** What ran with one target, prompt and variant: a row of the list. */
export interface Case {
  route: string;
  /** Number of its eval file, and what it is sorted by in the order of the files: of cases in a file only. */
  file?: number;
  path?: string;
  order?: number[];
  id: string;
  suite: string;
  target: string;
  prompt: string | null;
  variant: string | null;
  tags: string[];
  status: string;
  score: number | null;
  teaser: string;
  sha: string;
  early: any;
  trials: Trial[];
  tables: Tables;
  base: Case | null;
  change: string | null;
}

export interface Tables {
  suites: string[];
  targets: string[];
  prompts: string[];
  variants: string[];
  tags: string[];
  [more: string]: any;
}

export interface Group {
  cases: Counts;
  rate: Rate | null;
  mean_score?: number | null;
}

/** A cause of failures; `examples`: the first of its cases. */
export interface Cause {
  status: string;
  cause: string;
  cases: number;
  trials: number;
  rerun: { command: string; cases: number } | null;
  examples: Case[];
}

/** The cases that moved one way. */
export interface Direction {
  change: string;
  title: string;
  total: number;
  cases: Case[];
}

export interface Against {
  base: { run_id: string; targets: string[] };
  candidate: { run_id: string; targets: string[] };
  comparison: any;
  changes: [string, number][];
  directions: Direction[];
  gone: { total: number; cases: { suite: string; id: string; target: string; prompt?: string; variant?: string }[] };
}

/** All that is known of a run before any of its cases is read. */
export interface Overview {
  facts: any;
  summary: any;
  tables: Tables;
  state: string;
  /** Why some of it cannot be read; empty: all of it was. */
  problem: string;
  /** Share of the rows that the server has read, 0..1; below 1 the numbers are of these. */
  indexed: number;
  done: number | null;
  planned: number | null;
  failures: { groups: Cause[]; rerun: string | null };
  /** `rows` and `distinct`: of the rows and the cases that are here; `cases`: of the whole run. */
  counts: { rows: Counts; cases: Counts; distinct: number; flaky: number; trials: number };
  rates: {
    run: Rate | null;
    by: Record<string, [string, Group][]>;
    assertions: { name: string; types: string[]; counts: Counts; rate: Rate | null }[];
  };
  scores: [number, number][];
  against: Against | null;
}

/** What is chosen of the cases; `""`: all. */
export interface Choice {
  status: string;
  suite: string;
  target: string;
  prompt: string;
  variant: string;
  tag: string;
  assertion: string;
  why: string;
  change: string;
  q: string;
  order: string;
  /** Of a grid: `different`, `changed`. */
  show: string;
  sort: string;
  /** Id of a run whose answers stand beside. */
  against: string;
  /** Lines `NAME=TEXT`: what a variable contains. */
  where: string;
}

/** The rows that a choice finds, in its order. They may arrive bit by bit. */
export interface Results {
  /** How many rows there are, as far as that is known. */
  total: number;
  /** How many cases these are, which may have run with several targets; null: unknown. */
  cases: number | null;
  rate: Rate | null;
  /** How many rows ended how, whatever statuses are chosen; null: unknown. */
  counts: Counts | null;
  /** The same of cases, each once with the worst of its rows. */
  worst: Counts | null;
  searching: boolean;
  problem: Error | null;
  at(place: number): Case | undefined;
  /** Rows of these places will be shown: have them ready. */
  need(first: number, last: number): void;
  placeOf(route: string): number;
  retry(): void;
  stop(): void;
}

/** The beginning of a text of `length` characters. */
export interface GridText {
  text: string;
  length: number;
}

/** What the cells of a column ran with. */
export interface GridColumn {
  target: string;
  prompt: string | null;
  variant: string | null;
}

/** A case in one column. `trial` is what `Source.whole` takes as part of a trial. */
export interface GridCell {
  column: number;
  route: string;
  trial: any;
  /** Of the trial; a file has none. */
  key?: string;
  status: string;
  score: number | null;
  samples: number;
  passed: number;
  answer: GridText | null;
  /** By which ratings know the answer. */
  output_sha256?: string;
  why: string;
  cost: number | null;
  duration: number;
  base: GridCell | null;
}

/** A case: its variables, and a cell for everything that it ran with. */
export interface GridRow {
  route: string;
  id: string;
  suite: string;
  /** Of its eval file. */
  path: string;
  tags: string[];
  description: string;
  vars: Record<string, GridText>;
  input: GridText;
  cells: GridCell[];
}

/** What is known of all rows. `counts`: by the worst cell of each, whatever status is chosen. */
export interface GridHead {
  columns: GridColumn[];
  counts: Counts;
  different: number;
  flaky: number;
  changed: number | null;
}

/** What a person thinks of an answer: `up`, `down`, or only a comment. */
export interface Rating {
  suite: string;
  case: string;
  output_sha256: string;
  person: string;
  thumb: string;
  comment: string;
  time: string;
  mine: boolean;
}

/** The rows of a grid, in their order. `head`: null until some have arrived. */
export interface GridResults {
  head: GridHead | null;
  total: number;
  searching: boolean;
  problem: Error | null;
  at(place: number): GridRow | undefined;
  need(first: number, last: number): void;
  retry(): void;
  stop(): void;
}

export interface Source {
  /** What a link that leads nowhere is missing from: `report` or `run`. */
  kind: string;
  overview(signal?: AbortSignal): Promise<Overview>;
  find(choice: Choice, changed: () => void): Results;
  grid(choice: Choice, changed: () => void, ids?: string[] | null): GridResults;
  caseAt(route: string, signal?: AbortSignal): Promise<Case | null>;
  casesOf(ids: string[], signal?: AbortSignal): Promise<Case[]>;
  whole(trial: Trial, signal?: AbortSignal): Promise<any>;
  /** Other runs of these suites, newest first. */
  others(suites: string[]): Promise<any[]>;
  /** Tells what changes while the run goes on; gives a function that ends that. */
  watch(listener: (news: News) => void): () => void;
}

/** `progress`: some trials ended; `state`: the run did; `reset`: load everything again. */
export interface News {
  kind: "progress" | "state" | "reset";
  done?: number;
  planned?: number;
  counts?: Counts;
  cases?: Case[];
  state?: string;
}
