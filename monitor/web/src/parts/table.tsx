// A table that can be sorted. On a narrow screen each row is a card, or it scrolls by itself.
import type { ComponentChildren, VNode } from "preact";
import { Term } from "./term";

export interface Column<Row> {
  name: string;
  head: ComponentChildren;
  cell: (row: Row) => ComponentChildren;
  number?: boolean;
  sort?: string;
  /** Of a column that can be sorted: the term that `head` stands for. */
  term?: string;
  first?: boolean;
  /** On a narrow screen, where a row is a card: it takes the whole width. */
  wide?: boolean;
  /** There, its head goes without saying. */
  bare?: boolean;
  /** On a narrow screen it is left out, unless it is what the table is sorted by. */
  lesser?: boolean;
}

export interface Props<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  keyOf: (row: Row, at: number) => string | number;
  sorted?: string;
  onSort?: (by: string) => void;
  /** Stays a table on a narrow screen, too; with up to four columns it does anyway. */
  plain?: boolean;
}

function Sort(props: { term?: string; act: () => void; children: ComponentChildren }) {
  return props.term
    ? <Term of={props.term} sort={props.act}>{props.children}</Term>
    : <button type="button" class="sort" onClick={props.act}>{props.children}</button>;
}

/** What stands for nothing: left out of cards. */
const NONE = "–";

/** With more columns than this a table is set tighter, so that it fits a window of 1280 px. */
const MANY = 10;

/** What a head says, as text: in cards it stands beside each value. */
function textOf(head: ComponentChildren): string {
  if (head === null || head === undefined || typeof head === "boolean") return "";
  if (Array.isArray(head)) return head.map(textOf).join("");
  if (typeof head !== "object") return String(head);
  const props = (head as VNode<{ children?: ComponentChildren; of?: string; class?: string }>).props;
  return props.class === "sr" ? "" : props.children === undefined ? (props.of ?? "") : textOf(props.children);
}

/** In cards there are no heads to click: what to sort by is chosen above them. */
function SortPick<Row>(props: { columns: Column<Row>[]; sorted?: string; onSort: (by: string) => void }) {
  return (
    <div class="pick sort-pick"><span aria-hidden="true">Sorted by</span>
      <select aria-label="Sorted by" value={props.sorted} onChange={(event) => props.onSort((event.target as HTMLSelectElement).value)}>
        {props.columns.filter((one) => one.sort).flatMap((one) => [
          <option key={`-${one.sort}`} value={`-${one.sort}`}>{textOf(one.head)}, most first</option>,
          <option key={one.sort} value={one.sort}>{textOf(one.head)}, least first</option>,
        ])}
      </select>
    </div>
  );
}

export function Table<Row>(props: Props<Row>) {
  const by = props.sorted?.replace(/^-/, "");
  const kindOf = (column: Column<Row>) => [
    column.number ? "number" : "", column.wide ? "wide" : "", column.bare ? "bare" : "", column.sort !== undefined && column.sort === by ? "by" : column.lesser ? "lesser" : "",
  ].filter(Boolean).join(" ") || undefined;
  return (
    <div class="scroll" role="region" aria-label={`Table: ${props.label}`} tabIndex={0}>
      {props.onSort ? <SortPick columns={props.columns} sorted={props.sorted} onSort={props.onSort} /> : null}
      <table class={[props.plain || props.columns.length <= 4 ? "" : "cards", props.columns.length > MANY ? "many" : ""].filter(Boolean).join(" ") || undefined}>
        <thead>
          <tr>
            {props.columns.map((column) => {
              const on = column.sort !== undefined && by === column.sort;
              const down = on && props.sorted?.startsWith("-");
              return (
                <th key={column.name} scope="col" class={kindOf(column)}
                  aria-sort={on ? (down ? "descending" : "ascending") : undefined}>
                  {column.sort && props.onSort
                    ? <Sort term={column.term} act={() => props.onSort?.(on && down ? column.sort! : `-${column.sort}`)}>{column.head}&nbsp;<span aria-hidden="true">{on ? (down ? "▾" : "▴") : "↕"}</span></Sort>
                    : column.term ? <Term of={column.term}>{column.head}</Term>
                    : column.head}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row, at) => (
            <tr key={props.keyOf(row, at)}>
              {props.columns.map((column) => {
                const told = column.cell(row);
                if (column.first) return <th key={column.name} scope="row">{told}</th>;
                return <td key={column.name} class={[kindOf(column), told === NONE || told === "" ? "none" : ""].filter(Boolean).join(" ") || undefined} data-head={textOf(column.head) || undefined}>{told}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
