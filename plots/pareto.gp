# Two outputs of a study, one against the other, with the front of what nothing beats in both:
# gnuplot -c pareto.gp STYLE_FOLDER FORMAT TARGET DATA SETTINGS. DATA: x, y, front (0 or 1), label.
format = ARG2; target = ARG3; wide = 1000; high = 560
eval ARG5
load ARG1."/style.gp"
set title title_text
set xlabel x_text
set ylabel y_text
set grid x y linecolor rgb "#dddddd" linetype 1 linewidth 1
set key tmargin right horizontal
set offsets graph 0.05, graph 0.22, graph 0.08, graph 0.06
on(f, v) = f > 0.5 ? v : NaN
set datafile missing NaN  # the line of the front passes over the others
plot ARG4 skip 1 using ($1 * scale_x):(on($3, $2 * scale_y)) with lines linestyle 2 title "front", \
     ARG4 skip 1 using ($1 * scale_x):($3 < 0.5 ? $2 * scale_y : NaN) with points linestyle 4 title "beaten", \
     ARG4 skip 1 using ($1 * scale_x):(on($3, $2 * scale_y)) with points linestyle 3 title "best (".points_text.")", \
     ARG4 skip 1 using ($1 * scale_x):($2 * scale_y):5 with labels left offset 1, 0.4 font ",9" textcolor rgb "#222222" notitle
