-- For /etc/slurm/cli_filter.lua of the head and of every host that people submit from, with
-- CliFilterPlugins=lua in slurm.conf: what `--signal` asks, also on the command line of sbatch,
-- becomes the comment that Tidegate reads. Tried on Slurm 22.05 and 24.11 (needs liblua).

function slurm_cli_setup_defaults(options, early_pass)
    return slurm.SUCCESS
end

function slurm_cli_pre_submit(options, offset)
    local flags, name, seconds = string.match(options["signal"] or "", "^([RB]*):?(%a%w+)@?(%d*)$")
    local comment = options["comment"]
    if name and not string.find(comment or "", "tidegate:ckpt=", 1, true) then
        local to = string.find(flags, "B", 1, true) and "B:" or "S:"
        local request = "tidegate:ckpt=" .. to .. name .. "@" .. (seconds ~= "" and seconds or "60")
        options["comment"] = comment and comment .. " " .. request or request
    end
    return slurm.SUCCESS
end

function slurm_cli_post_submit(offset, job_id, step_id)
    return slurm.SUCCESS
end
