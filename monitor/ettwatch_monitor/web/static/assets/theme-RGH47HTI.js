try{let t=localStorage.getItem("ettwatch-theme");(t==="light"||t==="dark")&&(document.documentElement.dataset.theme=t)}catch{}
