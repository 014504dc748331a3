// A table that can be sorted and scrolls by itself on a narrow screen.
import type { ComponentChildren } from "preact";
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
}

export interface Props<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  keyOf: (row: Row, at: number) => string | number;
  sorted?: string;
  onSort?: (by: string) => void;
}

function Sort(props: { term?: string; act: () => void; children: ComponentChildren }) {
  return props.term
    ? <Term of={props.term} sort={props.act}>{props.children}</Term>
    : <button type="button" class="sort" onClick={props.act}>{props.children}</button>;
}

export function Table<Row>(props: Props<Row>) {
  return (
    <div class="scroll" role="region" aria-label={`Table: ${props.label}`} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {props.columns.map((column) => {
              const on = column.sort !== undefined && props.sorted?.replace(/^-/, "") === column.sort;
              const down = on && props.sorted?.startsWith("-");
              return (
                <th key={column.name} scope="col" class={column.number ? "number" : undefined}
                  aria-sort={on ? (down ? "descending" : "ascending") : undefined}>
                  {column.sort && props.onSort
                    ? <Sort term={column.term} act={() => props.onSort?.(on && down ? column.sort! : `-${column.sort}`)}>{column.head} <span aria-hidden="true">{on ? (down ? "▾" : "▴") : "↕"}</span></Sort>
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
              {props.columns.map((column) =>
                column.first
                  ? <th key={column.name} scope="row">{column.cell(row)}</th>
                  : <td key={column.name} class={column.number ? "number" : undefined}>{column.cell(row)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
