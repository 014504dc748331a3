// What every view knows: who looks, and where the page is.
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Range } from "./range";
import type { Place } from "./router";
import type { Me } from "./types";

export interface Scene {
  me: Me;
  place: Place;
  range: Range;
}

export const Scenes = createContext<Scene | null>(null);

export function useScene(): Scene {
  const scene = useContext(Scenes);
  if (!scene) throw new Error("a view stands outside the page");
  return scene;
}
